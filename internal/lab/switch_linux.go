package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"

	"github.com/braggdev/bragg/internal/lab/cable"
)

// Names of interfaces within a lab's namespaces, invisible outside.
const (
	switchName  = "switch"
	machinePort = "machine"
	uplinkName  = "uplink"
)

// bridge is the switch, number 0, or the bridge of a host.
func (l *Lab) bridge(name string, number int) cable.Bridge {
	return cable.Bridge{Name: name, Subnet: l.Subnet, Lab: l.ID, Number: number}
}

// buildSwitch makes the lab's bridge in this network namespace, and the machine's interface in that of the file.
func buildSwitch(l *Lab, outside *os.File) error {
	addresses := []netip.Addr{cable.Nth(l.Subnet, switchAddress)}
	for _, h := range l.Hosts {
		addresses = append(addresses, h.BMC)
	}
	b := l.bridge(switchName, 0)
	if err := b.Build(addresses...); err != nil {
		return err
	}
	return b.PlugMachine(machinePort, l.Interface, outside, l.Controller())
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
	b := l.bridge(PoolName, number)
	if err := b.Build(h.Address); err != nil {
		return err
	}
	return b.Uplink(uplinkName)
}

// interfaceExists reports whether this network namespace has an interface of that name.
func interfaceExists(name string) (bool, error) {
	_, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return false, nil
	}
	return err == nil, err
}
