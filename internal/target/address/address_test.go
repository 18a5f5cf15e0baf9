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
		{"fd00::ff", "fd00::1:1", 0xff03}, {"::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", CountMax}, {"0.0.0.0", "255.255.255.255", CountMax},
	} {
		if got := Between(netip.MustParseAddr(c.first), netip.MustParseAddr(c.last)); got != c.want {
			t.Errorf("from %s to %s there are %d addresses, want %d", c.first, c.last, got, c.want)
		}
	}
	if got := Between(netip.Addr{}, netip.MustParseAddr("10.0.0.1")); got != 0 {
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
