package session

import (
	"fmt"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// individuals notices VMs that are not who they should be: clones that kept the machine-id or the address of their
// template get each other's packets, and one agent that answers for two VMs measures nothing that can be believed.
type individuals struct {
	// systems: every VM has a system of its own. On hosts that stand for VMs, machine-id and addresses are the host's.
	systems bool

	mu    sync.Mutex
	known map[string]agent.Hello // by name of the VM
}

func newIndividuals(systems bool) *individuals {
	return &individuals{systems: systems, known: map[string]agent.Hello{}}
}

// meet notes what an agent says of itself, and returns an error when another VM says the same.
func (i *individuals) meet(vm target.VM, hello agent.Hello) error {
	if !i.systems {
		hello.MachineID, hello.Addresses = "", nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known[vm.Name] = hello
	for _, shared := range agent.SharedIdentities(i.known) {
		for _, name := range shared.VMs {
			if name != vm.Name {
				continue
			}
			delete(i.known, vm.Name) // the next attempt may find it mended
			return &diag.Error{
				Code: "vm-shared-identity", Exit: diag.ExitUnavailable,
				Message: fmt.Sprintf("VMs %s have the same %s: %s", strings.Join(shared.VMs, " and "), shared.Kind, shared.Value),
				Hint:    "clones must differ from their template: empty /etc/machine-id in it, and let each VM have an address of its own",
			}
		}
	}
	return nil
}

// forget drops a VM that is switched off or gone: its address may be given to another.
func (i *individuals) forget(vm string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.known, vm)
}
