package target

import "fmt"

// Capability names something a target supports beyond creating and deleting VMs.
type Capability string

const (
	CapAgents    Capability = "agents"
	CapAddresses Capability = "vm-addresses"
	CapVMPower   Capability = "vm-power"
	CapClone     Capability = "clone"
	CapSnapshot  Capability = "snapshot"
	CapRevert    Capability = "revert"
	CapMigrate   Capability = "migrate"
	CapRelocate  Capability = "relocate-datastore"
	CapPlacement Capability = "placement"
	CapNodePower Capability = "node-power"
	// CapContainer: settings of the storage of VM disks can be changed.
	CapContainer Capability = "container-settings"
	// CapMaintenance: nodes can be taken out of use in an orderly way.
	CapMaintenance Capability = "maintenance"
	CapReady       Capability = "ready-check"
	CapDatastore   Capability = "datastore-check"
	CapDrain       Capability = "write-cache-check"
	CapNodeMeter   Capability = "node-metrics"
	CapVMMeter     Capability = "vm-metrics"
	CapGuestShell  Capability = "guest-shell"
	// CapPlaybook and CapHostShell need a controller that may run programs of the scenario: --allow-shell.
	CapPlaybook  Capability = "playbook"
	CapHostShell Capability = "host-shell"
)

// capabilities are all of them.
var capabilities = []Capability{
	CapAgents, CapAddresses, CapVMPower, CapClone, CapSnapshot, CapRevert, CapMigrate, CapRelocate, CapPlacement, CapNodePower, CapContainer, CapMaintenance,
	CapReady, CapDatastore, CapDrain, CapNodeMeter, CapVMMeter, CapGuestShell, CapPlaybook, CapHostShell,
}

// Limited is a target that offers less than its type does: capabilities that are missing in this cluster or for this user, with one
// sentence each on the reason.
type Limited interface {
	Missing() map[Capability]string
}

// Capabilities lists the capabilities of t in a fixed order: those whose interfaces it implements, without those that it calls missing.
func Capabilities(t Target) []Capability {
	var have []Capability
	var missing map[Capability]string
	if l, ok := t.(Limited); ok {
		missing = l.Missing()
	}
	add := func(ok bool, c Capability) {
		if _, lacks := missing[c]; ok && !lacks {
			have = append(have, c)
		}
	}
	_, ok := t.(AgentDialer)
	add(ok, CapAgents)
	_, ok = t.(Addresser)
	add(ok, CapAddresses)
	_, ok = t.(VMPower)
	add(ok, CapVMPower)
	_, ok = t.(Cloner)
	add(ok, CapClone)
	_, ok = t.(Snapshotter)
	add(ok, CapSnapshot)
	_, ok = t.(Reverter)
	add(ok, CapRevert)
	_, ok = t.(Migrator)
	add(ok, CapMigrate)
	_, ok = t.(DatastoreRelocator)
	add(ok, CapRelocate)
	_, ok = t.(Placer)
	add(ok, CapPlacement)
	_, ok = t.(NodePower)
	add(ok, CapNodePower)
	_, ok = t.(Maintainer)
	add(ok, CapMaintenance)
	_, ok = t.(ReadyChecker)
	add(ok, CapReady)
	_, ok = t.(ContainerSetter)
	add(ok, CapContainer)
	_, ok = t.(DatastoreChecker)
	add(ok, CapDatastore)
	_, ok = t.(DrainChecker)
	add(ok, CapDrain)
	_, ok = t.(NodeMeter)
	add(ok, CapNodeMeter)
	_, ok = t.(VMMeter)
	add(ok, CapVMMeter)
	_, ok = t.(GuestShell)
	add(ok, CapGuestShell)
	// On a simulated target, the controller's own programs are simulated too.
	simulator, ok := t.(Simulator)
	simulated := ok && simulator.Simulated()
	_, ok = t.(GuestLogins)
	add(simulated || ok, CapPlaybook)
	add(simulated, CapHostShell)
	return have
}

// Simulator is a target that may be entirely simulated: it only records its programs and does not run them.
type Simulator interface {
	Simulated() bool
}

// FirstAddress is the first of the addresses that a VM was given.
func FirstAddress(vm VM) (string, error) {
	if len(vm.Addresses) == 0 {
		return "", fmt.Errorf("vm %q has no address", vm.Name)
	}
	return vm.Addresses[0], nil
}
