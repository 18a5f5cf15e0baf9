package session

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestUsageByNUMANode(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("sys/devices/system/node/node0/cpulist", "0-1,4\n")
	write("sys/devices/system/node/node1/cpulist", "2-3\n")
	write("proc/stat", "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\ncpu2 0 0 0 0 0 0 0 0 0 0\ncpu3 0 0 0 0 0 0 0 0 0 0\ncpu4 0 0 0 0 0 0 0 0 0 0\nintr 1\n")
	from := cpuTimes(root)
	write("proc/stat", "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 100 0 0 0 0 0 0 0 0 0\ncpu1 0 0 50 25 25 0 0 0 0 0\ncpu2 0 0 0 100 0 0 0 0 7 7\ncpu3 0 0 0 50 0 0 0 50 0 0\ncpu4 0 0 0 100 0 0 0 0 0 0\nintr 2\n")
	got := busyShares(from, cpuTimes(root))
	if len(got) != 2 || math.Abs(got[0]-0.5) > 1e-9 || math.Abs(got[1]-0.25) > 1e-9 {
		t.Errorf("busy %v, want 0.5 and 0.25", got)
	}
	if busyShares(nil, from) != nil || cpuTimes(filepath.Join(root, "none")) != nil {
		t.Error("a reading that failed has shares")
	}
	write("cpu", "some avg10=86.37 avg60=60.31 avg300=67.30 total=15158780125\nfull avg10=0.00\n")
	if got := pressure(filepath.Join(root, "cpu")); math.Abs(got-0.6031) > 1e-9 {
		t.Errorf("pressure %v, want 0.6031", got)
	}
	if pressure(filepath.Join(root, "none")) != 0 {
		t.Error("pressure of a kernel that does not count it")
	}
}
