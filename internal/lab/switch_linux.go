package lab

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

// Names of interfaces within a lab's namespaces, invisible outside.
const (
	switchName  = "switch"
	machinePort = "machine"
	uplinkName  = "uplink"
)

// usedNetworks lists the networks that this machine has addresses of, or routes to.
func usedNetworks() ([]netip.Prefix, error) {
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

// hardwareAddress is that of a bridge, which would else change with its ports. Number 0 is the switch.
func (l *Lab) hardwareAddress(number int) net.HardwareAddr {
	id, err := hex.DecodeString(l.ID)
	if err != nil || len(id) != 4 {
		id = make([]byte, 4)
	}
	return append(net.HardwareAddr{0x02}, append(id, byte(number))...)
}

func inSubnet(l *Lab, a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(l.Subnet.Bits(), 32)}}
}

// buildSwitch makes the lab's bridge in this network namespace, and the machine's interface in that of the file.
func buildSwitch(l *Lab, outside *os.File) error {
	if err := raiseLoopback(); err != nil {
		return err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: switchName, HardwareAddr: l.hardwareAddress(0)}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make the switch: %w", err)
	}
	addresses := []netip.Addr{nth(l.Subnet, switchAddress)}
	for _, h := range l.Hosts {
		addresses = append(addresses, h.BMC)
	}
	for _, a := range addresses {
		if err := netlink.AddrAdd(bridge, inSubnet(l, a)); err != nil {
			return fmt.Errorf("give the switch the address %s: %w", a, err)
		}
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("raise the switch: %w", err)
	}
	port := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: machinePort}, PeerName: l.Interface, PeerNamespace: netlink.NsFd(outside.Fd()),
	}
	if err := plug(port); err != nil {
		return fmt.Errorf("connect the machine: %w", err)
	}
	handle, err := netlink.NewHandleAt(netns.NsHandle(outside.Fd()))
	if err != nil {
		return fmt.Errorf("connect the machine: %w", err)
	}
	defer handle.Close()
	peer, err := handle.LinkByName(l.Interface)
	if err == nil {
		err = errors.Join(handle.AddrAdd(peer, inSubnet(l, l.Controller())), handle.LinkSetUp(peer))
	}
	if err != nil {
		return fmt.Errorf("connect the machine: %w", err)
	}
	return nil
}

func raiseLoopback() error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("raise the loopback interface: %w", err)
	}
	return nil
}

// plug makes a pair of interfaces and connects the near one to the switch.
func plug(port *netlink.Veth) error {
	bridge, err := netlink.LinkByName(switchName)
	if err != nil {
		return err
	}
	if err := netlink.LinkAdd(port); err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetMaster(port, bridge), netlink.LinkSetUp(port))
}

// plugHost connects a host, whose first process is given.
func plugHost(name string, id int) error {
	port := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: uplinkName, PeerNamespace: netlink.NsPid(id)}
	if err := plug(port); err != nil {
		return fmt.Errorf("connect host %q: %w", name, err)
	}
	return nil
}

// unplugHost takes the link of a host away, at both ends.
func unplugHost(name string) error {
	port, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(port)
	}
	if err != nil {
		return fmt.Errorf("disconnect host %q: %w", name, err)
	}
	return nil
}

// setLink pulls or plugs the cable of a host that is on.
func setLink(name string, up bool) error {
	port, err := netlink.LinkByName(name)
	if err == nil {
		if up {
			err = netlink.LinkSetUp(port)
		} else {
			err = netlink.LinkSetDown(port)
		}
	}
	if err != nil {
		return fmt.Errorf("switch the link of host %q: %w", name, err)
	}
	return nil
}

// buildHostNetwork makes the bridge that guests are plugged into, in a host's own namespace.
func buildHostNetwork(l *Lab, h Host, number int) error {
	if err := raiseLoopback(); err != nil {
		return err
	}
	uplink, err := netlink.LinkByName(uplinkName)
	if err != nil {
		return fmt.Errorf("find the uplink: %w", err)
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: PoolName, HardwareAddr: l.hardwareAddress(number)}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make bridge %q: %w", PoolName, err)
	}
	err = errors.Join(netlink.AddrAdd(bridge, inSubnet(l, h.Address)), netlink.LinkSetMaster(uplink, bridge),
		netlink.LinkSetUp(uplink), netlink.LinkSetUp(bridge))
	if err != nil {
		return fmt.Errorf("make bridge %q: %w", PoolName, err)
	}
	return nil
}

// interfaceExists reports whether this network namespace has an interface of that name.
func interfaceExists(name string) (bool, error) {
	_, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return false, nil
	}
	return err == nil, err
}
