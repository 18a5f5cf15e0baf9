package program_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/braggdev/bragg/internal/load/program"
)

// Whatever thread a program is started from, /proc/self/mountinfo keeps showing the mounts of this process.
func TestAloneKeepsMounts(t *testing.T) {
	mounts := func() string {
		t.Helper()
		name, err := os.Readlink("/proc/" + strconv.Itoa(os.Getpid()) + "/ns/mnt")
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	before := mounts()
	for i := range 100 {
		p, err := program.Command{Path: "/bin/true", Alone: true}.Start()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
		if after := mounts(); after != before {
			t.Fatalf("after program %d the mounts of this process are %s, before %s", i+1, after, before)
		}
	}
}
