package kubelab

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

// A cluster has one flat network of 4096 addresses, without routers: nodes, pods and the machine see each other at the link.
const (
	subnetBits        = 20
	subnetSize        = 1 << (32 - subnetBits)
	controllerAddress = 1        // of the machine
	switchAddress     = 2        // of the API server
	firstNodeAddress  = 11       //
	podsOfNode        = 256      // node i has those from (i+1)*256
	serviceAddress    = 15 * 256 // of services; the API server answers at the first one
)

// subnets is where clusters take theirs from.
var subnets = netip.MustParsePrefix("10.214.0.0/16")

const (
	bridgeName = "cluster" // of the switch, and of each node
	uplinkName = "uplink"
	portal     = "machine"
)

func nth(p netip.Prefix, n int) netip.Addr {
	a := p.Masked().Addr().As4()
	v := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3]) + uint32(n)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

func (d *description) nodeAddress(i int) netip.Addr { return nth(d.Subnet, firstNodeAddress+i) }

func (d *description) apiAddress() netip.Addr { return nth(d.Subnet, switchAddress) }

// services is the network of services, and its first address that of the service "kubernetes".
func (d *description) services() netip.Prefix {
	return netip.PrefixFrom(nth(d.Subnet, serviceAddress), 24)
}

func (d *description) server() string { return "https://" + d.apiAddress().String() }

// freeSubnet returns the first network without a route.
func freeSubnet() (netip.Prefix, error) {
	used, err := usedNetworks()
	if err != nil {
		return netip.Prefix{}, err
	}
	for n := range 1 << (subnetBits - subnets.Bits()) {
		candidate := netip.PrefixFrom(nth(subnets, n*subnetSize), subnetBits)
		free := true
		for _, u := range used {
			free = free && !u.Overlaps(candidate)
		}
		if free {
			return candidate, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("make a cluster: all networks of %s are in use on this machine", subnets)
}

func (d *description) inSubnet(a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(d.Subnet.Bits(), 32)}}
}

// hardwareAddress is that of a bridge, which would otherwise change with its ports.
func (d *description) hardwareAddress(number int) net.HardwareAddr {
	id, err := hex.DecodeString(d.ID)
	if err != nil || len(id) != 4 {
		id = make([]byte, 4)
	}
	return append(net.HardwareAddr{0x02}, append(id, byte(number))...)
}

// buildBridge makes the bridge of this network namespace.
func (d *description) buildBridge(number int, addresses ...netip.Addr) error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("raise the loopback interface: %w", err)
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeName, HardwareAddr: d.hardwareAddress(number)}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make a bridge: %w", err)
	}
	for _, a := range addresses {
		if err := netlink.AddrAdd(bridge, d.inSubnet(a)); err != nil {
			return fmt.Errorf("give a bridge the address %s: %w", a, err)
		}
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("raise a bridge: %w", err)
	}
	return nil
}

// buildSwitch makes the bridge of all nodes here, and the machine's interface in the network namespace of the file.
func buildSwitch(d *description, outside *os.File) error {
	if err := d.buildBridge(0, d.apiAddress(), d.services().Addr().Next()); err != nil {
		return err
	}
	port := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: portal}, PeerName: d.Interface, PeerNamespace: netlink.NsFd(outside.Fd())}
	if err := plug(port); err != nil {
		return fmt.Errorf("connect the machine: %w", err)
	}
	handle, err := netlink.NewHandleAt(netns.NsHandle(outside.Fd()))
	if err != nil {
		return fmt.Errorf("connect the machine: %w", err)
	}
	defer handle.Close()
	peer, err := handle.LinkByName(d.Interface)
	if err == nil {
		err = errors.Join(handle.AddrAdd(peer, d.inSubnet(nth(d.Subnet, controllerAddress))), handle.LinkSetUp(peer))
	}
	if err != nil {
		return fmt.Errorf("connect the machine: %w", err)
	}
	return nil
}

// plug makes a pair of interfaces and connects the near one to the bridge.
func plug(port *netlink.Veth) error {
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return err
	}
	if err := netlink.LinkAdd(port); err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetMaster(port, bridge), netlink.LinkSetUp(port))
}

// buildNodeNetwork makes the bridge of a node, in its own namespace. Pods are plugged into it.
func buildNodeNetwork(d *description, number int) error {
	if err := d.buildBridge(number+1, d.Nodes[number].Address); err != nil {
		return err
	}
	uplink, err := netlink.LinkByName(uplinkName)
	if err != nil {
		return fmt.Errorf("find the uplink: %w", err)
	}
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("find the bridge: %w", err)
	}
	// A kubelet wants a default route to find its node's address.
	route := &netlink.Route{LinkIndex: bridge.Attrs().Index, Gw: d.apiAddress().AsSlice()}
	if err := errors.Join(netlink.LinkSetMaster(uplink, bridge), netlink.LinkSetUp(uplink), netlink.RouteAdd(route)); err != nil {
		return fmt.Errorf("connect the node: %w", err)
	}
	return nil
}
