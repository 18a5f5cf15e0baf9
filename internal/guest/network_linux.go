package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/vishvananda/netlink"

	"github.com/braggdev/bragg/internal/wait"
)

const (
	networkPause    = time.Second // after the first failure; it doubles
	networkPauseMax = 15 * time.Second
	dhcpAnswers     = 3 * time.Second // for each of dhcpTries
	dhcpTries       = 3
	leaseDefault    = time.Hour // if the server gives none
	leaseMin        = 10 * time.Second
)

// connect returns once every interface has its address. It retries until ctx ends: an agent without a network is useless,
// and a switch may come back.
func (m *machine) connect(ctx context.Context, s Seed) error {
	done := map[int]bool{} // interfaces that have their address, by kernel index
	for pause := networkPause; ; pause = min(2*pause, networkPauseMax) {
		err := m.connectOnce(ctx, s, done)
		if err == nil {
			return nil
		}
		m.say("no network: %v; trying again", err)
		if wait.For(ctx, pause) != nil {
			return ctx.Err()
		}
	}
}

func (m *machine) connectOnce(ctx context.Context, s Seed, done map[int]bool) error {
	// Others learn at once that an address has moved.
	_ = os.WriteFile("/proc/sys/net/ipv4/conf/all/arp_notify", []byte("1"), 0)
	if lo, err := netlink.LinkByName("lo"); err == nil {
		m.check(netlink.LinkSetUp(lo))
	}
	cards, err := ethernets()
	if err != nil {
		return err
	}
	if len(s.Network) == 0 {
		return m.firstOf(ctx, cards, s.Hostname)
	}
	taken := map[int]bool{}
	for _, want := range s.Network {
		card, err := pick(cards, want.MAC, taken)
		if err != nil {
			return err
		}
		index := card.Attrs().Index
		taken[index] = true
		if done[index] {
			continue
		}
		if err := m.connectLink(ctx, card, want, s.Hostname); err != nil {
			return fmt.Errorf("%s (%s): %w", card.Attrs().Name, card.Attrs().HardwareAddr, err)
		}
		done[index] = true
	}
	return nil
}

// firstOf requests an address on one interface after another until one has it.
func (m *machine) firstOf(ctx context.Context, cards []netlink.Link, hostname string) error {
	var faults []error
	for _, card := range cards {
		err := m.connectLink(ctx, card, Link{}, hostname)
		if err == nil {
			return nil
		}
		faults = append(faults, fmt.Errorf("%s: %w", card.Attrs().Name, err))
	}
	return errors.Join(faults...)
}

// ethernets lists the interfaces of the VM, ordered by kernel index.
func ethernets() ([]netlink.Link, error) {
	all, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var cards []netlink.Link
	for _, l := range all {
		if l.Attrs().Flags&net.FlagLoopback == 0 && len(l.Attrs().HardwareAddr) == 6 && l.Attrs().MasterIndex == 0 {
			cards = append(cards, l)
		}
	}
	if len(cards) == 0 {
		return nil, errors.New("no network interface found")
	}
	return cards, nil
}

func pick(cards []netlink.Link, mac string, taken map[int]bool) (netlink.Link, error) {
	want, _ := net.ParseMAC(mac) // checked with the seed
	for _, c := range cards {
		if !taken[c.Attrs().Index] && (mac == "" || c.Attrs().HardwareAddr.String() == want.String()) {
			return c, nil
		}
	}
	if mac == "" {
		return nil, errors.New("there are fewer interfaces than the seed describes")
	}
	return nil, fmt.Errorf("no interface %s found", mac)
}

func (m *machine) connectLink(ctx context.Context, card netlink.Link, want Link, hostname string) error {
	if want.MTU != 0 {
		if err := netlink.LinkSetMTU(card, want.MTU); err != nil {
			return fmt.Errorf("set MTU %d: %w", want.MTU, err)
		}
	}
	if err := netlink.LinkSetUp(card); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if want.Address == "" {
		return m.lease(ctx, card, hostname)
	}
	address, network, err := net.ParseCIDR(want.Address)
	if err != nil {
		return err
	}
	if err := give(card, &net.IPNet{IP: address, Mask: network.Mask}, net.ParseIP(want.Gateway)); err != nil {
		return err
	}
	m.say("%s has %s", card.Attrs().Name, want.Address)
	return nil
}

// give sets an address and the default route.
func give(card netlink.Link, address *net.IPNet, gateway net.IP) error {
	if err := netlink.AddrReplace(card, &netlink.Addr{IPNet: address}); err != nil {
		return fmt.Errorf("set address %s: %w", address, err)
	}
	if gateway == nil {
		return nil
	}
	if err := netlink.RouteReplace(&netlink.Route{LinkIndex: card.Attrs().Index, Gw: gateway}); err != nil {
		return fmt.Errorf("set gateway %s: %w", gateway, err)
	}
	return nil
}

// lease gets an address from a DHCP server, identified by the card's MAC address, which is unique among VMs.
func (m *machine) lease(ctx context.Context, card netlink.Link, hostname string) error {
	client, err := nclient4.New(card.Attrs().Name, nclient4.WithTimeout(dhcpAnswers), nclient4.WithRetry(dhcpTries))
	if err != nil {
		return fmt.Errorf("ask for an address: %w", err)
	}
	identity := append([]byte{1}, card.Attrs().HardwareAddr...) // RFC 2132, 9.14: 1 is Ethernet
	options := []dhcpv4.Modifier{
		dhcpv4.WithOption(dhcpv4.OptHostName(hostname)), dhcpv4.WithOption(dhcpv4.OptClientIdentifier(identity)),
	}
	lease, err := client.Request(ctx, options...)
	if err != nil {
		_ = client.Close()
		return fmt.Errorf("ask for an address: %w", err)
	}
	address := addressOf(lease.ACK)
	if err := give(card, address, gatewayOf(lease.ACK)); err != nil {
		_ = client.Close()
		return err
	}
	m.say("%s has %s by DHCP", card.Attrs().Name, address)
	go m.renew(ctx, card, &tenancy{client: client, lease: lease, address: address, options: options})
	return nil
}

// tenancy is an address leased from a DHCP server.
type tenancy struct {
	client  *nclient4.Client
	lease   *nclient4.Lease
	address *net.IPNet
	options []dhcpv4.Modifier
}

// renew renews a DHCP lease until ctx ends. An unreachable server is retried; the address stays in the meantime, because
// removing it would end an otherwise undisturbed run.
func (m *machine) renew(ctx context.Context, card netlink.Link, t *tenancy) {
	var o outcome
	defer m.survive(&o)
	defer t.client.Close()
	delay := renewAfter(t.lease.ACK)
	for {
		if wait.For(ctx, delay) != nil {
			return
		}
		next, err := t.client.Renew(ctx, t.lease, t.options...)
		var refused *nclient4.ErrNak
		if errors.As(err, &refused) {
			next, err = t.client.Request(ctx, t.options...)
		}
		if err != nil {
			m.say("%s: renew %s: %v; keeping it", card.Attrs().Name, t.address, err)
			delay = againAfter(t.lease, time.Now())
			continue
		}
		t.lease, delay = next, renewAfter(next.ACK)
		address := addressOf(next.ACK)
		if err := give(card, address, gatewayOf(next.ACK)); err != nil {
			m.say("%s: %v", card.Attrs().Name, err)
			continue
		}
		if address.String() != t.address.String() {
			m.say("%s has %s by DHCP, and no longer %s", card.Attrs().Name, address, t.address)
			m.check(netlink.AddrDel(card, &netlink.Addr{IPNet: t.address}))
			t.address = address
		}
	}
}

func addressOf(ack *dhcpv4.DHCPv4) *net.IPNet {
	mask := ack.SubnetMask()
	if mask == nil {
		mask = ack.YourIPAddr.DefaultMask()
	}
	return &net.IPNet{IP: ack.YourIPAddr, Mask: mask}
}

func gatewayOf(ack *dhcpv4.DHCPv4) net.IP {
	if routers := ack.Router(); len(routers) > 0 {
		return routers[0]
	}
	return nil
}

// renewAfter is half of the lease, according to RFC 2131, 4.4.5.
func renewAfter(ack *dhcpv4.DHCPv4) time.Duration {
	return max(ack.IPAddressLeaseTime(leaseDefault)/2, leaseMin)
}

// againAfter is half of the remaining lease after a failed renewal, according to the same section.
func againAfter(l *nclient4.Lease, now time.Time) time.Duration {
	return max(l.CreationTime.Add(l.ACK.IPAddressLeaseTime(leaseDefault)).Sub(now)/2, leaseMin)
}
