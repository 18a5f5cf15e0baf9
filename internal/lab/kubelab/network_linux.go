package kubelab

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"

	"github.com/braggdev/bragg/internal/lab/cable"
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
var subnets = cable.Range{All: netip.MustParsePrefix("10.214.0.0/16"), Bits: subnetBits}

const (
	bridgeName = "cluster" // of the switch, and of each node
	uplinkName = "uplink"
	portal     = "machine"
)

func (d *description) nodeAddress(i int) netip.Addr { return cable.Nth(d.Subnet, firstNodeAddress+i) }

func (d *description) apiAddress() netip.Addr { return cable.Nth(d.Subnet, switchAddress) }

// services is the network of services, and its first address that of the service "kubernetes".
func (d *description) services() netip.Prefix {
	return netip.PrefixFrom(cable.Nth(d.Subnet, serviceAddress), 24)
}

func (d *description) server() string { return "https://" + d.apiAddress().String() }

// freeSubnet returns the first network without a route.
func freeSubnet() (netip.Prefix, error) {
	used, err := cable.Used()
	if err != nil {
		return netip.Prefix{}, err
	}
	if free, ok := subnets.Free(used); ok {
		return free, nil
	}
	return netip.Prefix{}, fmt.Errorf("make a cluster: all networks of %s are in use on this machine", subnets.All)
}

// bridge is the bridge of the cluster, number 0, or of a node.
func (d *description) bridge(number int) cable.Bridge {
	return cable.Bridge{Name: bridgeName, Subnet: d.Subnet, Lab: d.ID, Number: number}
}

// buildSwitch makes the bridge of all nodes here, and the machine's interface in the network namespace of the file.
func buildSwitch(d *description, outside *os.File) error {
	b := d.bridge(0)
	if err := b.Build(d.apiAddress(), d.services().Addr().Next()); err != nil {
		return err
	}
	return b.PlugMachine(portal, d.Interface, outside, cable.Nth(d.Subnet, controllerAddress))
}

// buildNodeNetwork makes the bridge of a node, in its own namespace. Pods are plugged into it.
func buildNodeNetwork(d *description, number int) error {
	b := d.bridge(number + 1)
	if err := b.Build(d.Nodes[number].Address); err != nil {
		return err
	}
	if err := b.Uplink(uplinkName); err != nil {
		return err
	}
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("find the bridge: %w", err)
	}
	// A kubelet wants a default route to find its node's address.
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: bridge.Attrs().Index, Gw: d.apiAddress().AsSlice()}); err != nil {
		return fmt.Errorf("connect the node: %w", err)
	}
	return nil
}
