package fio_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/fio"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

const helperVariable = "BRAGG_FIO_TEST_HELPER" // path of the helper's device

// helper is another process of this test binary, which runs fio until it is killed.
func helper() {
	w := load.Workload{
		Name: "w", ConfigName: "w.fio", Config: "[a]\nfilename=/dev/sdb\nrw=read\ntime_based\nruntime=1000\nrate_iops=10\nnumjobs=3\n",
		Devices: []load.Device{{Name: "/dev/sdb", Path: os.Getenv(helperVariable), SizeBytes: 1 << 20}},
	}
	loadtest.BeHelper(fio.Generator{}, w)
}

// TestFioDiesWithUs kills a process that runs fio, as power off does with an agent.
func TestFioDiesWithUs(t *testing.T) {
	needFio(t)
	mark(t)
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	loadtest.Orphans(t, []string{helperVariable + "=" + path}, 1, func() {
		if marked := markedProcesses(t); len(marked) != 2 {
			t.Errorf("processes %v, want the helper and fio", marked)
		}
	}, func() []string { return markedProcesses(t) })
}

// mark makes the processes that this test starts recognisable.
func mark(t *testing.T) {
	t.Helper()
	t.Setenv(markVariable, t.Name()+strconv.Itoa(os.Getpid()))
}

// markedProcesses returns the living processes with this test's mark, without this one.
func markedProcesses(t *testing.T) []string {
	t.Helper()
	want := markVariable + "=" + os.Getenv(markVariable)
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(data), "\x00"), want) {
			continue // gone, unreadable or not ours
		}
		if pid := filepath.Base(filepath.Dir(path)); pid != strconv.Itoa(os.Getpid()) {
			out = append(out, pid)
		}
	}
	return out
}
