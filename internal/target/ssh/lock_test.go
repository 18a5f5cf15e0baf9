package ssh

import (
	"testing"

	"github.com/braggdev/bragg/internal/hostvm"
)

// TestMachineIsOneSystem: boards share UUIDs, and a machine of two names has one system.
func TestMachineIsOneSystem(t *testing.T) {
	const uuid, later = "03000200-0400-0500-0006-000700080009", "f0000000-0400-0500-0006-000700080009"
	one := hostvm.Info{Hostname: "one", Libvirt: uuid, Boot: "boot-1", Network: "net:[1]"}
	for name, c := range map[string]struct {
		other hostvm.Info
		same  bool
	}{
		"another name":   {hostvm.Info{Hostname: "two", Libvirt: uuid, Boot: "boot-1", Network: "net:[1]"}, true},
		"shared board":   {hostvm.Info{Hostname: "two", Libvirt: uuid, Boot: "boot-2", Network: "net:[1]"}, false},
		"lab":            {hostvm.Info{Hostname: "one", Libvirt: uuid, Boot: "boot-1", Network: "net:[2]"}, false},
		"without a UUID": {hostvm.Info{Hostname: "one", Boot: "boot-1", Network: "net:[1]"}, false},
	} {
		if same := machine(one) == machine(c.other); same != c.same {
			t.Errorf("%s: the same is %v", name, same)
		}
	}
	// libvirt's provider takes leases in the order of the UUIDs alone.
	if after := (hostvm.Info{Libvirt: later, Boot: "boot-0", Network: "net:[0]"}); machine(one) > machine(after) {
		t.Error("hosts have another order than for libvirt")
	}
}
