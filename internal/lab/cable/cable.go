// Package cable makes the networks of labs: a free subnet of this machine, a bridge in a network namespace, and pairs of interfaces
// that connect other namespaces with it.
package cable

import "net/netip"

// Range is where labs of one kind take their subnets from.
type Range struct {
	All  netip.Prefix // of IPv4
	Bits int          // of each subnet
}

// Free returns the first subnet that overlaps none of those in use; false: there is none.
func (r Range) Free(used []netip.Prefix) (netip.Prefix, bool) {
	for n := range 1 << (r.Bits - r.All.Bits()) {
		candidate := netip.PrefixFrom(Nth(r.All, n<<(32-r.Bits)), r.Bits)
		free := true
		for _, u := range used {
			free = free && !u.Overlaps(candidate)
		}
		if free {
			return candidate, true
		}
	}
	return netip.Prefix{}, false
}

// Nth returns the address number n of a network of IPv4.
func Nth(p netip.Prefix, n int) netip.Addr {
	a := p.Masked().Addr().As4()
	v := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3]) + uint32(n)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}
