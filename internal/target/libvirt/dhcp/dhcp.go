// Package dhcp finds the addresses that the networks of a libvirt host assign to its VMs.
//
//	networks of libvirt ──▶ DHCPMax: how many there can be; Of: the address of a running domain
package dhcp

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// DHCPMax returns the number of addresses that the DHCP server of a host's own network can assign; 0 if unknown: on
// bridges, and on networks without their own DHCP server.
func DHCPMax(ctx context.Context, h *virsh.Host, network string) int {
	if strings.HasPrefix(network, "bridge:") {
		return 0
	}
	text, err := h.Query(ctx, "net-dumpxml", "--network="+network)
	if err != nil {
		return 0 // creating VMs will report it
	}
	count, err := parseNetwork(text)
	if err != nil {
		return 0
	}
	return count
}

// parseNetwork reads the definition of a network (https://libvirt.org/formatnetwork.html) and returns how many addresses of
// version 4 its DHCP can lease: those of its ranges without those that are reserved for certain hosts. 0: it has no DHCP.
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
	count := 0
	for _, r := range network.Ranges {
		first, err := netip.ParseAddr(r.Start)
		if err != nil || !first.Is4() {
			continue
		}
		last, err := netip.ParseAddr(r.End)
		if err != nil {
			continue
		}
		count += address.Between(first, last)
		taken := map[netip.Addr]bool{}
		for _, h := range network.Hosts {
			if a, err := netip.ParseAddr(h.IP); err == nil && a.Is4() && last.Is4() && !a.Less(first) && !last.Less(a) && !taken[a] {
				taken[a] = true
				count--
			}
		}
	}
	return min(max(count, 0), address.CountMax), nil
}

// Of returns the address of a running domain: from the leases of its host's own networks, or else from the host's
// neighbor table; "" if there is none yet.
func Of(ctx context.Context, h *virsh.Host, domain string) (string, error) {
	var errs []error
	for _, source := range []string{"lease", "arp"} {
		out, err := h.Query(ctx, "domifaddr", "--domain="+domain, "--source="+source)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if a := parseAddress(out); a != "" {
			return a, nil
		}
	}
	return "", errors.Join(errs...)
}

// parseAddress reads the output of virsh domifaddr: name, MAC, protocol and address with its prefix on each line.
func parseAddress(text []byte) string {
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 4 || fields[2] != "ipv4" && fields[2] != "ipv6" {
			continue
		}
		word, _, _ := strings.Cut(fields[3], "/")
		if a, err := netip.ParseAddr(word); err == nil && !a.IsLinkLocalUnicast() && !a.IsUnspecified() {
			return a.String()
		}
	}
	return ""
}
