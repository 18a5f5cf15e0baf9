//go:build unix

package fiolog_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iojob/fiolog"
)

// A file that accepts no writes blocks the load for a bounded time, in bounded memory; missing lines are reported.
func TestStuckFile(t *testing.T) {
	defer fiolog.SetWaitMax(200 * time.Millisecond)()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	logs := fiojob.Logs{IOPS: fiojob.Log{On: true}}
	set, err := fiolog.New([]fiolog.Clone{{Name: "a", Number: 1, Logs: logs}}, fiolog.Options{Path: func(string) string { return pipe }})
	if err != nil {
		t.Fatal(err)
	}
	r := set.Recorder(0)
	r.Begin(0)
	operations := batch()
	for range 40_000 { // more than the memory holds
		r.Completed(operations)
	}
	r.End(21)
	if r.Waited() < 200*time.Millisecond {
		t.Errorf("the load waited %s only", r.Waited())
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		buf := make([]byte, 1<<16)
		for {
			if n, err := reader.Read(buf); n == 0 || err != nil {
				return
			}
		}
	}()
	fiolog.SetWaitMax(time.Minute) // there is a reader now
	if err := set.Close(); err == nil || !strings.Contains(err.Error(), "operations are missing") {
		t.Errorf("the error is %v", err)
	}
	_ = reader.Close()
	<-drained
}
