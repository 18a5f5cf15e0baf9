package lab

import (
	"fmt"
	"net/netip"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/cable"
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
var subnets = cable.Range{All: netip.MustParsePrefix("10.213.0.0/16"), Bits: subnetBits}

// freeSubnet returns the first network that overlaps none of those in use.
func freeSubnet(used []netip.Prefix) (netip.Prefix, error) {
	if free, ok := subnets.Free(used); ok {
		return free, nil
	}
	return netip.Prefix{}, &diag.Error{
		Code: "lab-no-subnet", Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("make a lab: all networks of %s are in use on this machine", subnets.All),
		Hint:    "bragg-lab down --all removes labs; routes of a VPN may cover the range too",
	}
}
