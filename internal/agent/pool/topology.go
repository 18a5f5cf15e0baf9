package pool

import (
	"fmt"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// checkTopology refuses a VM whose system sees its CPUs divided in another way than the scenario asks for: a comparison of topologies would
// compare nothing. A system that does not describe its CPUs passes.
func checkTopology(vm target.VM, asked target.Topology, seen *wire.CPUs) error {
	if !asked.Set() || seen == nil {
		return nil
	}
	found := target.Topology{Sockets: seen.Sockets, Cores: seen.Cores, Threads: seen.Threads}
	if found == asked {
		return nil
	}
	return &diag.Error{Code: "cpu-topology-differs", Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("vm %q sees %s, and its group asks for %s", vm.Name, found, asked),
		Hint:    "the processor or the hypervisor of its node does not pass it on; leave out cpu_threads or cpu_sockets"}
}
