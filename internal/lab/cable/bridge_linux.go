package cable

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Used lists the networks that this machine has addresses of, or routes to.
func Used() ([]netip.Prefix, error) {
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	var used []netip.Prefix
	add := func(n *net.IPNet) {
		if n == nil {
			return
		}
		a, ok := netip.AddrFromSlice(n.IP.To4())
		bits, _ := n.Mask.Size()
		if ok && bits > 0 { // the default route leads everywhere
			used = append(used, netip.PrefixFrom(a, bits).Masked())
		}
	}
	for _, a := range addresses {
		add(a.IPNet)
	}
	for _, r := range routes {
		add(r.Dst)
	}
	return used, nil
}

// Bridge is the bridge of one network namespace. Its methods act in the namespace of the calling thread.
type Bridge struct {
	Name   string
	Subnet netip.Prefix
	// Lab is the identity of the lab, 8 digits in hex, and Number that of the bridge in it: its hardware address comes from both,
	// because it would otherwise change with the ports.
	Lab    string
	Number int
}

// Build makes the bridge with these addresses, and raises it and the loopback interface.
func (b Bridge) Build(addresses ...netip.Addr) error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("raise the loopback interface: %w", err)
	}
	id, err := hex.DecodeString(b.Lab)
	if err != nil || len(id) != 4 {
		id = make([]byte, 4)
	}
	hardware := append(net.HardwareAddr{0x02}, append(id, byte(b.Number))...)
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: b.Name, HardwareAddr: hardware}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make bridge %q: %w", b.Name, err)
	}
	for _, a := range addresses {
		if err := netlink.AddrAdd(bridge, b.address(a)); err != nil {
			return fmt.Errorf("give bridge %q the address %s: %w", b.Name, a, err)
		}
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("raise bridge %q: %w", b.Name, err)
	}
	return nil
}

func (b Bridge) address(a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(b.Subnet.Bits(), 32)}}
}

// Plug connects the namespace of a process: port is the near end of the pair, peer the far one.
func (b Bridge) Plug(port, peer string, process int) error {
	err := b.plug(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: port}, PeerName: peer, PeerNamespace: netlink.NsPid(process)})
	if err != nil {
		return fmt.Errorf("connect %q: %w", port, err)
	}
	return nil
}

// PlugMachine connects the namespace of a file, and raises the far end with an address.
func (b Bridge) PlugMachine(port, peer string, outside *os.File, a netip.Addr) error {
	err := b.plug(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: port}, PeerName: peer, PeerNamespace: netlink.NsFd(outside.Fd())})
	if err != nil {
		return fmt.Errorf("connect the machine: %w", err)
	}
	handle, err := netlink.NewHandleAt(netns.NsHandle(outside.Fd()))
	if err != nil {
		return fmt.Errorf("connect the machine: %w", err)
	}
	defer handle.Close()
	far, err := handle.LinkByName(peer)
	if err == nil {
		err = errors.Join(handle.AddrAdd(far, b.address(a)), handle.LinkSetUp(far))
	}
	if err != nil {
		return fmt.Errorf("connect the machine: %w", err)
	}
	return nil
}

// plug makes a pair of interfaces and connects the near one to the bridge.
func (b Bridge) plug(port *netlink.Veth) error {
	bridge, err := netlink.LinkByName(b.Name)
	if err != nil {
		return err
	}
	if err := netlink.LinkAdd(port); err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetMaster(port, bridge), netlink.LinkSetUp(port))
}

// Uplink connects the far end of a pair, which is in this namespace, to the bridge.
func (b Bridge) Uplink(name string) error {
	uplink, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find the uplink: %w", err)
	}
	bridge, err := netlink.LinkByName(b.Name)
	if err == nil {
		err = errors.Join(netlink.LinkSetMaster(uplink, bridge), netlink.LinkSetUp(uplink))
	}
	if err != nil {
		return fmt.Errorf("connect the uplink: %w", err)
	}
	return nil
}

// Unplug removes a pair, at both ends. One that is gone is removed.
func Unplug(port string) error {
	link, err := netlink.LinkByName(port)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("disconnect %q: %w", port, err)
	}
	return nil
}
