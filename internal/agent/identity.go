package agent

import (
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// ownIdentity finds what distinguishes this machine from others. It reads anew each time: addresses come and go.
func ownIdentity() (machineID string, addresses []string) {
	text, err := os.ReadFile("/etc/machine-id") // machine-id(5); other systems have none
	if err == nil && len(text) < 256 {
		machineID = strings.TrimSpace(string(text))
	}
	found, err := net.InterfaceAddrs()
	if err != nil {
		return machineID, nil
	}
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			addresses = append(addresses, n.IP.String())
		}
	}
	slices.Sort(addresses)
	return machineID, addresses
}

// SharedIdentity is something that should distinguish one VM from others, and that several VMs have.
type SharedIdentity struct {
	Kind  string   // "agent", "machine-id", "address"
	Value string   // in one form, however an agent wrote it
	VMs   []string // at least two, in order
}

// SharedIdentities compares what the agents of VMs say of themselves, by the names under which the controller knows the
// VMs, and returns what two or more of them share: agents (one agent answers for two VMs), machine-ids, addresses, each in
// order. What an agent does not say is not compared.
func SharedIdentities(agents map[string]Hello) []SharedIdentity {
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
