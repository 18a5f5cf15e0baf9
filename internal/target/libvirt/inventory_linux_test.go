package libvirt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/braggdev/bragg/internal/target"
)

// The number of addresses of a host's own network is read from the host; of a bridge, or a missing network, it is not known.
func TestAddressesOfHosts(t *testing.T) {
	r := newRig(t)
	path := filepath.Join(t.TempDir(), "few.xml")
	text := "<network><name>few</name><ip address='10.99.0.1' prefix='24'><dhcp><range start='10.99.0.10' end='10.99.0.14'/></dhcp></ip></network>"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.virsh(t, 0, "net-define", path)
	inventory := func() target.Inventory {
		t.Helper()
		i, err := r.open(t, t.TempDir(), nil, nil).Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	if i := inventory(); i.AddressesMax < 2 || i.Nodes[0].AddressesMax != 0 {
		t.Errorf("of the lab's range there is room for %d VMs, and for %d on the first host", i.AddressesMax, i.Nodes[0].AddressesMax)
	}
	r.config.Addresses = target.Addresses{DHCP: true}
	for network, want := range map[string]int{"few": 5, r.config.Network: 0} {
		r.config.Network = network
		i := inventory()
		if i.AddressesMax != 0 || i.Nodes[0].AddressesMax != want || i.Nodes[1].AddressesMax != 0 {
			t.Errorf("network %q: room for %d, on hosts for %d and %d, want %d on the first", network, i.AddressesMax,
				i.Nodes[0].AddressesMax, i.Nodes[1].AddressesMax, want)
		}
	}
	r.virsh(t, 0, "net-undefine", "few")
}
