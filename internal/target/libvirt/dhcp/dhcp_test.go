package dhcp

import (
	"testing"

	"github.com/braggdev/bragg/internal/target/address"
)

// networks are as virsh net-dumpxml prints them, with how many addresses their DHCP has.
var networks = map[string]int{
	`<network><name>default</name><forward mode='nat'/><bridge name='virbr0' stp='on' delay='0'/>
	<ip address='192.168.122.1' netmask='255.255.255.0'><dhcp><range start='192.168.122.2' end='192.168.122.254'/></dhcp></ip></network>`: 253,
	`<network><ip address='10.0.0.1' prefix='24'><dhcp><range start='10.0.0.10' end='10.0.0.19'/><range start='10.0.0.100' end='10.0.0.100'/>
	<host mac='52:54:00:00:00:01' ip='10.0.0.12'/><host mac='52:54:00:00:00:02' ip='10.0.0.12'/><host mac='52:54:00:00:00:03' ip='10.0.0.200'/></dhcp></ip>
	<ip family='ipv6' address='fd00::1' prefix='64'><dhcp><range start='fd00::10' end='fd00::ff'/></dhcp></ip></network>`: 10,
	`<network><name>bridged</name><forward mode='bridge'/><bridge name='br0'/></network>`:                                      0,
	`<network><ip address='10.0.0.1' prefix='24'><dhcp><range start='10.0.0.19' end='10.0.0.10'/></dhcp></ip></network>`:       0,
	`<network><ip><dhcp><range start='0.0.0.0' end='255.255.255.255'/><range start='x' end='10.0.0.1'/></dhcp></ip></network>`: address.CountMax,
}

func TestNetworks(t *testing.T) {
	for text, want := range networks {
		if got, err := parseNetwork([]byte(text)); err != nil || got != want {
			t.Errorf("%s\nhas %d addresses (%v), want %d", text, got, err, want)
		}
	}
	if _, err := parseNetwork([]byte("<network")); err == nil {
		t.Error("half a definition was read")
	}
}

func FuzzNetwork(f *testing.F) {
	for text := range networks {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if count, err := parseNetwork(text); count < 0 || count > address.CountMax || err != nil && count != 0 {
			t.Errorf("%d addresses, %v", count, err)
		}
	})
}

func TestAddressOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", " vnet0      52:54:00:12:34:56    ipv4         10.0.2.17/24\n": "10.0.2.17",
		" vnet0 52:54:00:12:34:56 ipv6 fe80::1/64\n -          -                    ipv4         10.0.2.18/24\n": "10.0.2.18",
		" vnet0 52:54:00:12:34:56 ipv4 N/A\n": "", " vnet0 x ipv4 0.0.0.0/0\n": "",
	} {
		if got := parseAddress([]byte(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
