package lab

import (
	"fmt"
	"net/netip"

	"github.com/braggdev/bragg/internal/diag"
)

// A lab has a network of 1024 addresses: these for its parts, and two ranges for guests, one by DHCP and one that target
// files give out.
const (
	subnetBits        = 22
	subnetSize        = 1 << (32 - subnetBits)
	controllerAddress = 1
	switchAddress     = 2
	hostAddress       = 11 // the first
	bmcAddress        = 31 // the first
	dhcpAddress       = 256
	dhcpAddressLast   = 511
	guestAddress      = 512
	guestAddressLast  = subnetSize - 6
)

// subnets is where labs take theirs from: a part of 10/8 that is seldom used.
var subnets = netip.MustParsePrefix("10.213.0.0/16")

// nth returns the address number n of a network of IPv4.
func nth(p netip.Prefix, n int) netip.Addr {
	a := p.Masked().Addr().As4()
	v := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3]) + uint32(n)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// freeSubnet returns the first network that overlaps none of those in use.
func freeSubnet(used []netip.Prefix) (netip.Prefix, error) {
	for n := 0; n < 1<<(subnetBits-subnets.Bits()); n++ {
		candidate := netip.PrefixFrom(nth(subnets, n*subnetSize), subnetBits)
		free := true
		for _, u := range used {
			free = free && !u.Overlaps(candidate)
		}
		if free {
			return candidate, nil
		}
	}
	return netip.Prefix{}, &diag.Error{
		Code: "lab-no-subnet", Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("make a lab: all networks of %s are in use on this machine", subnets),
		Hint:    "bragg-lab down --all removes labs; routes of a VPN may cover the range too",
	}
}
