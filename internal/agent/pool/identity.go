package pool

import (
	"cmp"
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
	// holder is who has an identifier: with ten thousand VMs, none is compared with all others.
	holder map[identifier]string
}

func newIdentityCheck(systems bool) *identityCheck {
	return &identityCheck{systems: systems, known: map[string]wire.Hello{}, holder: map[identifier]string{}}
}

// check notes what an agent says of itself, and returns an error when another VM says the same.
func (i *identityCheck) check(vm target.VM, hello wire.Hello) error {
	if !i.systems {
		hello.MachineID, hello.Addresses = "", nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drop(vm.Name)
	alike := map[string]wire.Hello{vm.Name: hello}
	own := identifiers(hello)
	for _, id := range own {
		if other, taken := i.holder[id]; taken {
			alike[other] = i.known[other]
		}
	}
	shared := slices.DeleteFunc(SharedIdentities(alike), func(s SharedIdentity) bool { return !slices.Contains(s.VMs, vm.Name) })
	if len(shared) > 0 { // it may be corrected before the next attempt
		return &diag.Error{
			Code: "vm-shared-identity", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("VMs %s have the same %s: %s", strings.Join(shared[0].VMs, " and "), shared[0].Kind, shared[0].Value),
			Hint:    "clones must differ from their template: empty /etc/machine-id in it, and let each VM have an address of its own",
		}
	}
	i.known[vm.Name] = hello
	for _, id := range own {
		i.holder[id] = vm.Name
	}
	return nil
}

// drop forgets what a VM said. The caller holds the lock.
func (i *identityCheck) drop(vm string) {
	for _, id := range identifiers(i.known[vm]) {
		delete(i.holder, id)
	}
	delete(i.known, vm)
}

// forget drops a VM that is switched off or gone: its address may be given to another.
func (i *identityCheck) forget(vm string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drop(vm)
}

// identifier is something that should be unique.
type identifier struct{ kind, value string }

// kinds are those of identifiers, in the order of messages.
var kinds = []string{"agent", "machine-id", "address"}

// identifiers are those of an agent, in one form however it wrote them, each once.
func identifiers(h wire.Hello) []identifier {
	var all []identifier
	note := func(kind, value string) {
		if id := (identifier{kind, value}); value != "" && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	note(kinds[0], h.Boot)
	note(kinds[1], strings.ToLower(strings.ReplaceAll(h.MachineID, "-", "")))
	for _, text := range h.Addresses {
		if a, err := netip.ParseAddr(text); err == nil && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
			note(kinds[2], a.Unmap().WithZone("").String())
		}
	}
	return all
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
	by := map[identifier][]string{}
	for _, vm := range slices.Sorted(maps.Keys(agents)) {
		for _, id := range identifiers(agents[vm]) {
			by[id] = append(by[id], vm)
		}
	}
	var found []SharedIdentity
	for id, vms := range by {
		if len(vms) > 1 {
			found = append(found, SharedIdentity{Kind: id.kind, Value: id.value, VMs: vms})
		}
	}
	slices.SortFunc(found, func(a, b SharedIdentity) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.Value, b.Value))
	})
	return found
}
