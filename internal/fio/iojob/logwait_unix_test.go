//go:build unix

package iojob_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/interval"
)

// Logs whose file is slower than the load throttle the load and lose nothing; the wait is reported once.
func TestWaitForLogsIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "x_iops.1.log")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan int, 1)
	progress := make(chan func() []iojob.Live, 1)
	go func() {
		awaitStandstill(<-progress)
		count, buf := 0, make([]byte, 1<<16)
		for {
			n, err := reader.Read(buf)
			count += bytes.Count(buf[:n], []byte("\n"))
			if err != nil || bytes.HasSuffix(buf[:n], []byte("end\n")) {
				lines <- count - 1
				return
			}
		}
	}()
	_, file := parse(t, dir, "[j]\nioengine=null\nsize=8g\nbs=4k\nrw=randread\nnorandommap\nwrite_iops_log=x\n")
	var said []string
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{
		Folder: dir, Say: func(text string) { said = append(said, text) }, Live: func(now func() []iojob.Live) { progress <- now },
	})
	if err != nil || report.LogFault != "" {
		t.Fatal(err, report.LogFault)
	}
	if _, err := reader.WriteString("end\n"); err != nil {
		t.Fatal(err)
	}
	row := &report.Rows[0]
	if got, want := uint64(<-lines), row.Directions[interval.Read].Operations; got != want || want != 2<<20 {
		t.Errorf("the log has %d lines of %d operations", got, want)
	}
	if row.LogWait <= 0 || len(said) != 1 || !strings.Contains(said[0], "1 of 1 clones waited") {
		t.Errorf("the load waited %s, said %q", row.LogWait, said)
	}
	_ = reader.Close()
}

// awaitStandstill returns when a load has had no progress for four seconds: the memory for its operations is full, however
// slow the machine. The load gives up waiting after ten.
func awaitStandstill(now func() []iojob.Live) {
	last, since := uint64(0), time.Now()
	for time.Since(since) < 4*time.Second {
		time.Sleep(100 * time.Millisecond)
		clones := now()
		if len(clones) == 0 {
			since = time.Now()
			continue
		}
		if done := clones[0].Traffic[interval.Read].Operations; done != last {
			last, since = done, time.Now()
		}
	}
}
