package fio_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/fio"
)

const helperVariable = "BRAGG_FIO_TEST_HELPER" // path of the helper's device

// helper is another process of this test binary, which runs fio until it is killed.
func helper() {
	w := load.Workload{
		Name: "w", ConfigName: "w.fio", Config: "[a]\nfilename=/dev/sdb\nrw=read\ntime_based\nruntime=1000\nrate_iops=10\nnumjobs=3\n",
		Devices: []load.Device{{Name: "/dev/sdb", Path: os.Getenv(helperVariable), SizeBytes: 1 << 20}},
	}
	in, err := fio.Generator{}.Prepare(context.Background(), w)
	if err == nil {
		err = in.Run(context.Background(), load.SinkFunc(func(interval.Interval) { fmt.Println("running") }))
	}
	fmt.Println("ended", err)
	os.Exit(1)
}

// TestFioDiesWithUs kills a process that runs fio, as power off does with an agent.
func TestFioDiesWithUs(t *testing.T) {
	needFio(t)
	mark(t)
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "running" {
		t.Errorf("helper says %q", lines.Text())
	}
	if marked := markedProcesses(t); len(marked) != 2 {
		t.Errorf("processes %v, want the helper and fio", marked)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	hang := time.Now().Add(30 * time.Second)
	for len(markedProcesses(t)) > 0 {
		if time.Now().After(hang) {
			t.Fatalf("processes %v outlive their parent", markedProcesses(t))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// mark makes the processes that this test starts recognisable.
func mark(t *testing.T) {
	t.Helper()
	t.Setenv(markVariable, t.Name()+strconv.Itoa(os.Getpid()))
}

// markedProcesses returns the living processes with this test's mark, without this one.
func markedProcesses(t *testing.T) []int {
	t.Helper()
	want := markVariable + "=" + os.Getenv(markVariable)
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(data), "\x00"), want) {
			continue // gone, unreadable or not ours
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
			out = append(out, pid)
		}
	}
	return out
}
