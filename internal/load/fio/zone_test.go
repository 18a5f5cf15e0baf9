package fio_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/fio"
)

// TestZonesStayInThePlan runs jobs with strided zones on a file that is larger than their regions and compares every
// operation of fio's own log with the extents of the plan.
func TestZonesStayInThePlan(t *testing.T) {
	program := needFio(t)
	for name, config := range map[string]string{
		"amount beyond the region": "rw=randwrite\nsize=8m\nzonesize=1m\nzoneskip=1m\n",
		"reads":                    "rw=randread\nsize=8m\nzonesize=1m\nzoneskip=2m\n",
		"offset and loops":         "rw=write\noffset=3m\nsize=4m\nloops=3\nzonesize=1m\nzoneskip=1m\n",
		"time":                     "rw=randwrite\nsize=4m\nfilesize=6m\ntime_based\nruntime=1\nrate_iops=20000\nzonesize=256k\nzoneskip=1m\n",
		"range below size":         "rw=write\nsize=4m\nio_size=9m\nzonesize=2m\nzonerange=1m\nzoneskip=1m\n",
		"blocks across the end":    "rw=write\nbs=96k\nsize=4m\nzonesize=1m\nzoneskip=1m\n",
		"mixed blocks":             "rw=randrw\nbssplit=4k/50:64k/50\nsize=4m\nzonesize=1m\nzoneskip=1m\n",
		"clones":                   "rw=write\nsize=2m\nnumjobs=2\noffset_increment=16m\nzonesize=1m\nzoneskip=1m\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t, "[a]\nfilename=/dev/sdb\nbs=4k\nzonemode=strided\n"+config, 1)
			if err := os.Truncate(w.Devices[0].Path, 64<<20); err != nil {
				t.Fatal(err)
			}
			w.Devices[0].SizeBytes = 64 << 20
			plan, err := fio.Generator{}.Plan(w)
			if err != nil {
				t.Fatal(err)
			}
			text, err := fio.JobFile(w)
			if err != nil {
				t.Fatal(err)
			}
			log := filepath.Join(t.TempDir(), "log")
			cmd := exec.Command(program, "-")
			cmd.Stdin = strings.NewReader(text + "write_iolog=" + log + "\n")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			checkInside(t, log, plan.Extents)
		})
	}
}

// checkInside reads fio's log of operations.
func checkInside(t *testing.T, path string, extents []extent.Extent) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	operations := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		n := len(fields)
		if n < 4 || fields[n-3] != "read" && fields[n-3] != "write" {
			continue
		}
		operations++
		var offset, length int64
		if _, err := fmt.Sscan(fields[n-2], &offset); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(fields[n-1], &length); err != nil {
			t.Fatal(err)
		}
		inside := func(e extent.Extent) bool { return e.Offset <= offset && offset+length <= e.Offset+e.Length }
		if !slices.ContainsFunc(extents, inside) {
			t.Fatalf("operation %d: %d bytes at %d are in none of %v", operations, length, offset, extents)
		}
	}
	if operations == 0 {
		t.Error("no operation in the log")
	}
}

// TestZonesEndWithTheDevice: a rehearsal's device is smaller than the scenario's, and fio walks to its end.
func TestZonesEndWithTheDevice(t *testing.T) {
	needFio(t)
	w := load.Workload{Name: "w", Generator: "fio", ConfigName: "w.fio",
		Config:  "[a]\nfilename=/dev/sdb\nrw=read\nbs=64k\ntime_based\nruntime=9\nsize=1g\nzonesize=32m\nzoneskip=32m\n",
		Devices: []load.Device{{Name: "/dev/sdb", SizeBytes: 4 << 30, ActualBytes: 48 << 20}},
		Scale:   load.Scale{Factor: 1.0 / 128, BlocksMin: 64}}
	plan, err := fio.Generator{}.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	last := plan.Extents[len(plan.Extents)-1]
	if end := last.Offset + last.Length; end <= 40<<20 || end > 48<<20 {
		t.Errorf("extents end at %d, the device at %d", end, 48<<20)
	}
	if !slices.ContainsFunc(plan.Notes, func(n string) bool { return strings.Contains(n, "beyond size and filesize") }) {
		t.Errorf("notes %q", plan.Notes)
	}
}
