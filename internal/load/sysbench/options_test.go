package sysbench_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/sysbench"
)

// workload is one of a VM with a disk that is a file.
func workload(t testing.TB, options map[string]string) load.Workload {
	return load.Workload{Name: "w", Group: "g", VM: "g-0001", Instance: 1, Generator: sysbench.Name, Seed: 7, Options: options,
		Devices: []load.Device{{Name: "/dev/sdb", Path: filepath.Join(t.TempDir(), "sdb"), SizeBytes: 1 << 30}}}
}

func TestBadOptions(t *testing.T) {
	for want, options := range map[string]map[string]string{
		`test is missing: one of cpu, memory`:     {},
		`"disk" is not one of cpu`:                {"test": "disk"},
		`no option "max_primes" (did you`:         {"test": "cpu", "max_primes": "1"},
		`no option "block_size"`:                  {"test": "cpu", "block_size": "1K"},
		"max_prime":                               {"test": "cpu", "max_prime": "0"},
		"threads":                                 {"test": "cpu", "threads": "many"},
		"percentile":                              {"test": "cpu", "percentile": "99.9"},
		"power of two":                            {"test": "memory", "block_size": "3KiB"},
		`"erase" is not one of write, read, none`: {"test": "memory", "operation": "erase"},
		"size of the files is missing":            {"test": "fileio", "mode": "rndrd"},
		"not a size":                              {"test": "fileio", "mode": "rndrd", "data": "50"},
		`mode is missing: one of rndrd`:           {"test": "fileio", "data": "1GiB"},
		"has /dev/sdb":                            {"test": "fileio", "data": "1GiB", "mode": "rndrd", "disk": "/dev/sdz"},
		"page cache":                              {"test": "fileio", "data": "1GiB", "mode": "rndrd", "io_mode": "mmap"},
		"fsync_every":                             {"test": "fileio", "data": "1GiB", "mode": "rndwr", "fsync_every": "-1"},
		"of mode rndrw":                           {"test": "fileio", "data": "1GiB", "mode": "rndrd", "rw_ratio": "2"},
		"the files take":                          {"test": "fileio", "data": "2GiB", "mode": "rndrd"},
	} {
		if _, err := (sysbench.Generator{}).Plan(workload(t, options)); err == nil || !strings.Contains(all(err), want) {
			t.Errorf("%v: %v, want %q", options, err, want)
		}
	}
}

// all is an error with its causes.
func all(err error) string {
	text := err.Error()
	for u, ok := err.(interface{ Unwrap() error }); ok; u, ok = err.(interface{ Unwrap() error }) {
		err = u.Unwrap()
		if err == nil {
			break
		}
		text += ": " + err.Error()
	}
	return text
}

func TestPlan(t *testing.T) {
	w := workload(t, map[string]string{"test": "fileio", "data": "1GiB", "files": "3", "mode": "rndrw", "threads": "4"})
	p, err := sysbench.Generator{}.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(p.Program.Commands, "\n") + strings.Join(p.Program.Data, "\n")
	for _, want := range []string{"--threads=4", "--file-num=3", "--file-total-size=1073725440", "--file-extra-flags=direct", "filled with zeros", "--time=315360000"} {
		if !strings.Contains(text, want) {
			t.Errorf("plan lacks %q:\n%s", want, text)
		}
	}
	if j := p.Jobs[0]; !j.Direct || j.BlockMax != 16<<10 || j.QueueDepth != 4 || j.Reducible != 1 || p.BytesWritten != -1 || len(p.Engine.Gauges) != 4 {
		t.Errorf("%+v", p)
	}
	w.Prefill, w.Scale = true, load.Scale{Factor: 0.001}
	p, err = sysbench.Generator{}.Plan(w)
	if err != nil || p.Extents[0].Length != 21*3*16<<10 || p.ScaledFrom != 1073725440 || !strings.HasSuffix(p.Program.Commands[0], " prepare") {
		t.Errorf("rehearsal: %+v, %v", p, err)
	}
}
