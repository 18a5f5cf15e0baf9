package agent

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/braggdev/bragg/internal/agent/wire"
)

// machine describes CPUs as Linux does; each is a socket, a die and a core. Dies of -1 are not there, as before Linux 5.3.
func machine(cpus ...[3]int) fstest.MapFS {
	fs := fstest.MapFS{cpuFolder + "/online": {Data: []byte("0-3\n")}, cpuFolder + "/cpufreq/policy0": {}, cpuFolder + "/cpu99/online": {Data: []byte("0\n")}}
	for i, c := range cpus {
		at := fmt.Sprintf("%s/cpu%d/topology/", cpuFolder, i)
		for name, n := range map[string]int{"physical_package_id": c[0], "die_id": c[1], "core_id": c[2]} {
			if name != "die_id" || n >= 0 {
				fs[at+name] = &fstest.MapFile{Data: fmt.Appendln(nil, n)}
			}
		}
	}
	return fs
}

func TestCPUsOf(t *testing.T) {
	for name, c := range map[string]struct {
		fs   fstest.MapFS
		want *wire.CPUs
	}{
		"one socket with two cores":             {machine([3]int{0, 0, 0}, [3]int{0, 0, 1}), &wire.CPUs{Sockets: 1, Cores: 2, Threads: 1}},
		"two sockets":                           {machine([3]int{0, 0, 0}, [3]int{1, 0, 0}), &wire.CPUs{Sockets: 2, Cores: 1, Threads: 1}},
		"a core with two threads":               {machine([3]int{0, 0, 0}, [3]int{0, 0, 0}), &wire.CPUs{Sockets: 1, Cores: 1, Threads: 2}},
		"cores of two dies with equal numbers":  {machine([3]int{0, 0, 0}, [3]int{0, 1, 0}), &wire.CPUs{Sockets: 1, Cores: 2, Threads: 1}},
		"an old kernel, without dies":           {machine([3]int{0, -1, 0}, [3]int{0, -1, 4}), &wire.CPUs{Sockets: 1, Cores: 2, Threads: 1}},
		"cores that differ":                     {machine([3]int{0, 0, 0}, [3]int{0, 0, 0}, [3]int{0, 0, 1}), nil},
		"sockets that differ":                   {machine([3]int{0, 0, 0}, [3]int{0, 0, 1}, [3]int{1, 0, 0}), nil},
		"a processor that has no package":       {machine([3]int{-1, 0, 0}), nil},
		"a system that describes no CPUs":       {fstest.MapFS{}, nil},
		"a number that is none, of a later CPU": {fstest.MapFS{cpuFolder + "/cpu0/topology/core_id": {Data: []byte("x")}}, nil},
	} {
		got := cpusOf(c.fs)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
