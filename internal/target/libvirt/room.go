package libvirt

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/netip"
	"strings"
)

// roomMax bounds what counts as a number of addresses: a network may span more than anybody's VMs.
const roomMax = 1 << 20

// addressesBetween returns how many addresses lie from first to last, both included, at most roomMax; 0 where that is no range.
func addressesBetween(first, last netip.Addr) int {
	if !first.IsValid() || !last.IsValid() || first.Is4() != last.Is4() || last.Less(first) {
		return 0
	}
	a, b := first.As16(), last.As16()
	var gap uint64
	for i := range a {
		if gap > roomMax {
			return roomMax
		}
		gap = gap<<8 + uint64(b[i]) - uint64(a[i]) // borrows even out in the next byte
	}
	return int(min(gap+1, roomMax))
}

// reserved returns how many addresses the target file has for VMs; 0 where it has none.
func (s settings) reserved() int {
	room := addressesBetween(s.first, s.last)
	if gateway, err := netip.ParseAddr(s.gateway); err == nil && room > 0 && !gateway.Less(s.first) && !s.last.Less(gateway) {
		room--
	}
	return room
}

// addressRoom returns how many VMs the DHCP of a host's own network can give an address. Of bridges and of networks without
// DHCP of their own nothing is known.
func (t *Target) addressRoom(ctx context.Context, n *node) int {
	if t.settings.first.IsValid() || strings.HasPrefix(t.settings.network, "bridge:") {
		return 0
	}
	text, err := n.query(ctx, "net-dumpxml", "--network="+t.settings.network)
	if err != nil {
		return 0 // creating VMs will tell
	}
	room, err := parseNetwork(text)
	if err != nil {
		return 0
	}
	return room
}

// parseNetwork reads the definition of a network (https://libvirt.org/formatnetwork.html) and returns how many addresses of
// version 4 its DHCP has for anybody: those of its ranges but for those that are reserved for certain hosts. 0: it has no DHCP.
func parseNetwork(text []byte) (int, error) {
	var network struct {
		Ranges []struct {
			Start string `xml:"start,attr"`
			End   string `xml:"end,attr"`
		} `xml:"ip>dhcp>range"`
		Hosts []struct {
			IP string `xml:"ip,attr"`
		} `xml:"ip>dhcp>host"`
	}
	if err := xml.Unmarshal(text, &network); err != nil {
		return 0, fmt.Errorf("read network: %w", err)
	}
	room := 0
	for _, r := range network.Ranges {
		first, err := netip.ParseAddr(r.Start)
		if err != nil || !first.Is4() {
			continue
		}
		last, err := netip.ParseAddr(r.End)
		if err != nil {
			continue
		}
		room += addressesBetween(first, last)
		taken := map[netip.Addr]bool{}
		for _, h := range network.Hosts {
			if a, err := netip.ParseAddr(h.IP); err == nil && a.Is4() && last.Is4() && !a.Less(first) && !last.Less(a) && !taken[a] {
				taken[a] = true
				room--
			}
		}
	}
	return min(max(room, 0), roomMax), nil
}
