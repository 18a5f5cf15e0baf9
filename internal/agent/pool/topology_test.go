package pool

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/target"
)

func TestCheckTopology(t *testing.T) {
	vm := target.VM{Name: "db-0001"}
	for name, c := range map[string]struct {
		asked target.Topology
		seen  *wire.CPUs
		want  string
	}{
		"any way":            {target.Topology{}, &wire.CPUs{Sockets: 8, Cores: 1, Threads: 1}, ""},
		"not described":      {target.Topology{Sockets: 2, Cores: 4, Threads: 1}, nil, ""},
		"equal":              {target.Topology{Sockets: 2, Cores: 4, Threads: 1}, &wire.CPUs{Sockets: 2, Cores: 4, Threads: 1}, ""},
		"other sockets":      {target.Topology{Sockets: 2, Cores: 4, Threads: 1}, &wire.CPUs{Sockets: 8, Cores: 1, Threads: 1}, "sees 8 sockets × 1 cores, and its group asks for 2 sockets × 4 cores"},
		"threads are hidden": {target.Topology{Sockets: 1, Cores: 2, Threads: 2}, &wire.CPUs{Sockets: 1, Cores: 4, Threads: 1}, "sees 1 sockets × 4 cores, and its group asks for 1 sockets × 2 cores × 2 threads"},
	} {
		if err := checkTopology(vm, c.asked, c.seen); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
