package pool

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// identityCheck refuses VMs that are not who they should be: clones that kept the machine-id or the address of their template get
// each other's packets, and the numbers of one agent that answers for two VMs are wrong.
type identityCheck struct {
	systems bool // see Options

	mu    sync.Mutex
	known map[string]wire.Hello // by name of the VM
}

func newIdentityCheck(systems bool) *identityCheck {
	return &identityCheck{systems: systems, known: map[string]wire.Hello{}}
}

// check notes what an agent says of itself, and returns an error when another VM says the same.
func (i *identityCheck) check(vm target.VM, hello wire.Hello) error {
	if !i.systems {
		hello.MachineID, hello.Addresses = "", nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known[vm.Name] = hello
	for _, shared := range SharedIdentities(i.known) {
		if !slices.Contains(shared.VMs, vm.Name) {
			continue
		}
		delete(i.known, vm.Name) // it may be corrected before the next attempt
		return &diag.Error{
			Code: "vm-shared-identity", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("VMs %s have the same %s: %s", strings.Join(shared.VMs, " and "), shared.Kind, shared.Value),
			Hint:    "clones must differ from their template: empty /etc/machine-id in it, and let each VM have an address of its own",
		}
	}
	return nil
}

// forget drops a VM that is switched off or gone: its address may be given to another.
func (i *identityCheck) forget(vm string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.known, vm)
}

// SharedIdentity is an identifier that should be unique, but that several VMs have.
type SharedIdentity struct {
	Kind  string   // "agent", "machine-id", "address"
	Value string   // in one form, however an agent wrote it
	VMs   []string // at least two, in order
}

// SharedIdentities compares the identities reported by agents, by the names of their VMs, and returns those that two or
// more share: agents (one agent answers for two VMs), machine-ids, addresses, each in order. Missing identities are not
// compared.
func SharedIdentities(agents map[string]wire.Hello) []SharedIdentity {
	boots, machines, addresses := map[string][]string{}, map[string][]string{}, map[string][]string{}
	note := func(to map[string][]string, value, vm string) {
		if value != "" && !slices.Contains(to[value], vm) {
			to[value] = append(to[value], vm)
		}
	}
	for _, vm := range slices.Sorted(maps.Keys(agents)) {
		h := agents[vm]
		note(boots, h.Boot, vm)
		note(machines, strings.ToLower(strings.ReplaceAll(h.MachineID, "-", "")), vm)
		for _, text := range h.Addresses {
			if a, err := netip.ParseAddr(text); err == nil && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
				note(addresses, a.Unmap().WithZone("").String(), vm)
			}
		}
	}
	return slices.Concat(shared("agent", boots), shared("machine-id", machines), shared("address", addresses))
}

func shared(kind string, by map[string][]string) (found []SharedIdentity) {
	for _, value := range slices.Sorted(maps.Keys(by)) {
		if vms := by[value]; len(vms) > 1 {
			found = append(found, SharedIdentity{Kind: kind, Value: value, VMs: vms})
		}
	}
	return found
}
