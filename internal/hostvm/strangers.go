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

// hypervisors are how processes begin their names that are VMs of somebody. The kernel keeps 15 letters of a name.
var hypervisors = []string{"qemu-", "kvm", "cloud-hyperviso", "firecracker", "VBoxHeadless", "VirtualBoxVM", "vmware-vmx", "crosvm", "bhyve"}

// strangersMax bounds how many are named.
const strangersMax = 20

// strangers lists the VMs on this host that do not carry tag.
func strangers(tag target.Tag) ([]string, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
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
	for _, other := range local.ForeignVMs(tag) {
		found = append(found, "bragg's VM "+other)
	}
	if len(found) > strangersMax {
		found = append(found[:strangersMax], fmt.Sprintf("and %d more", len(found)-strangersMax))
	}
	return found, nil
}
