package agent

import (
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What an agent says of its machine can be compared.
func TestOwnIdentity(t *testing.T) {
	t.Parallel()
	_, addresses := ownIdentity()
	for _, text := range addresses {
		if a, err := netip.ParseAddr(text); err != nil || a.IsLoopback() {
			t.Errorf("address %q: %v", text, err)
		}
	}
	if !slices.IsSorted(addresses) {
		t.Errorf("addresses are %v", addresses)
	}
}

// Docker's bridge has the same address in every VM, and so has what k3s makes on a single node; the VM's own is on a device, or on what
// is built over one.
func TestOwnAddressesLeadOut(t *testing.T) {
	t.Parallel()
	class := t.TempDir()
	add := func(name, kind string, lower ...string) {
		for _, l := range append(lower, ".") {
			if err := os.MkdirAll(filepath.Join(class, name, "lower_"+l), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(class, name, "uevent"), []byte("DEVTYPE="+kind+"\nINTERFACE="+name+"\nIFINDEX=2\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, nic := range []string{"eth0", "eth1"} {
		if err := os.MkdirAll(filepath.Join(class, nic, "device"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	add("veth1", "veth")
	add("docker0", "bridge", "veth1")
	add("virbr0", "bridge")
	add("flannel.1", "vxlan", "eth0")
	add("bond0", "bond", "eth0", "eth1")
	add("bond0.5", "vlan", "bond0")
	add("br0", "bridge", "bond0.5", "veth1")
	add("loop", "bridge", "loop")
	inner := map[string][]string{
		"docker0": {"172.17.0.1"}, "virbr0": {"192.168.122.1"}, "flannel.1": {"10.42.0.0"}, "loop": {"10.9.9.9"}, "gone": {"10.8.8.8"},
	}
	for _, own := range []string{"eth0", "bond0", "bond0.5", "br0"} {
		by := maps.Clone(inner)
		by[own] = []string{"2001:db8::7", "10.0.0.7"}
		if got := outward(class, by); !slices.Equal(got, []string{"10.0.0.7", "2001:db8::7"}) {
			t.Errorf("beside an address on %s: %v", own, got)
		}
	}
	if got := outward(class, inner); len(got) != len(inner) {
		t.Errorf("where no interface leads out: %v", got)
	}
}

// An agent that listens on one address of several shows that one.
func TestIdentityAtAddress(t *testing.T) {
	for listen, want := range map[string]string{"127.3.2.1:7401": "127.3.2.1", "[fd00::1]:7401": "fd00::1"} {
		if _, got := identityAt(listen)(); len(got) != 1 || got[0] != want {
			t.Errorf("%s: addresses %q, want %s", listen, got, want)
		}
	}
	_, all := ownIdentity()
	for _, listen := range []string{":7401", "0.0.0.0:7401", "[::]:7401", "unix:/run/agent"} {
		if _, got := identityAt(listen)(); len(got) != len(all) {
			t.Errorf("%s: addresses %q, want %q", listen, got, all)
		}
	}
}
