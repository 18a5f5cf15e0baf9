package address

import (
	"net/netip"
	"testing"
)

func TestAddressesBetween(t *testing.T) {
	for _, c := range []struct {
		first, last string
		want        int
	}{
		{"10.0.0.1", "10.0.0.1", 1}, {"10.0.0.250", "10.0.1.9", 16}, {"10.0.0.2", "10.0.0.1", 0}, {"10.0.0.1", "fd00::1", 0},
		{"fd00::ff", "fd00::1:1", 0xff03}, {"::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", countMax}, {"0.0.0.0", "255.255.255.255", countMax},
	} {
		if got := between(netip.MustParseAddr(c.first), netip.MustParseAddr(c.last)); got != c.want {
			t.Errorf("from %s to %s there are %d addresses, want %d", c.first, c.last, got, c.want)
		}
	}
	if got := between(netip.Addr{}, netip.MustParseAddr("10.0.0.1")); got != 0 {
		t.Errorf("a range without a beginning has %d", got)
	}
}

func TestReservedAddresses(t *testing.T) {
	s := Range{First: netip.MustParseAddr("10.0.0.1"), Last: netip.MustParseAddr("10.0.0.10"), Gateway: "10.0.0.1"}
	if got := s.Count(); got != 9 {
		t.Errorf("ten addresses with the gateway leave %d", got)
	}
	s.Gateway = "10.0.0.254"
	if got := s.Count(); got != 10 {
		t.Errorf("ten addresses are %d", got)
	}
	if got := (Range{}).Count(); got != 0 {
		t.Errorf("without a range there are %d", got)
	}
}

// networks are as virsh net-dumpxml prints them, with how many addresses their DHCP has.
var networks = map[string]int{
	`<network><name>default</name><forward mode='nat'/><bridge name='virbr0' stp='on' delay='0'/>
	<ip address='192.168.122.1' netmask='255.255.255.0'><dhcp><range start='192.168.122.2' end='192.168.122.254'/></dhcp></ip></network>`: 253,
	`<network><ip address='10.0.0.1' prefix='24'><dhcp><range start='10.0.0.10' end='10.0.0.19'/><range start='10.0.0.100' end='10.0.0.100'/>
	<host mac='52:54:00:00:00:01' ip='10.0.0.12'/><host mac='52:54:00:00:00:02' ip='10.0.0.12'/><host mac='52:54:00:00:00:03' ip='10.0.0.200'/></dhcp></ip>
	<ip family='ipv6' address='fd00::1' prefix='64'><dhcp><range start='fd00::10' end='fd00::ff'/></dhcp></ip></network>`: 10,
	`<network><name>bridged</name><forward mode='bridge'/><bridge name='br0'/></network>`:                                      0,
	`<network><ip address='10.0.0.1' prefix='24'><dhcp><range start='10.0.0.19' end='10.0.0.10'/></dhcp></ip></network>`:       0,
	`<network><ip><dhcp><range start='0.0.0.0' end='255.255.255.255'/><range start='x' end='10.0.0.1'/></dhcp></ip></network>`: countMax,
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
		if count, err := parseNetwork(text); count < 0 || count > countMax || err != nil && count != 0 {
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
