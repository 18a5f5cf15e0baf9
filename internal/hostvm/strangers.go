//go:build linux

package hostvm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/local"
)

// hypervisors are name prefixes of processes that are VMs. The kernel keeps 15 characters of a name.
var hypervisors = []string{"qemu-", "kvm", "cloud-hyperviso", "firecracker", "VBoxHeadless", "VirtualBoxVM", "vmware-vmx", "crosvm", "bhyve"}

// strangersMax bounds how many are named, othersMax how many are listed.
const (
	strangersMax = 20
	othersMax    = 1000
)

// strangers lists the VMs on this host that do not carry tag.
func strangers(tag target.Tag) ([]string, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	found, err := hypervisorProcesses()
	if err != nil {
		return nil, err
	}
	for _, other := range local.ForeignVMs(tag) {
		found = append(found, "bragg's VM "+other)
	}
	if len(found) > strangersMax {
		found = append(found[:strangersMax], fmt.Sprintf("and %d more", len(found)-strangersMax))
	}
	return found, nil
}

// withHypervisors adds the processes of hypervisors to the other objects on this host.
func withHypervisors(others []target.Other) ([]target.Other, error) {
	found, err := hypervisorProcesses()
	for _, name := range found {
		others = append(others, target.Other{Kind: target.OtherVM, Name: name, Why: target.WhyUnmarked})
	}
	return others[:min(len(others), othersMax)], err
}

// hypervisorProcesses names the processes of this host that are VMs.
func hypervisorProcesses() ([]string, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []string
	for _, p := range all {
		name, err := p.Comm()
		if err != nil {
			continue // it has ended
		}
		if slices.ContainsFunc(hypervisors, func(h string) bool { return strings.HasPrefix(name, h) }) {
			found = append(found, fmt.Sprintf("process %d (%s)", p.PID, name))
		}
	}
	return found, nil
}
