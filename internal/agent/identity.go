package agent

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// netClass is where Linux describes its network interfaces.
const netClass = "/sys/class/net"

// ownIdentity returns what distinguishes this machine from others. It reads again on each call: addresses come and go.
func ownIdentity() (machineID string, addresses []string) {
	text, err := os.ReadFile("/etc/machine-id") // machine-id(5); other systems have none
	if err == nil && len(text) < 256 {
		machineID = strings.TrimSpace(string(text))
	}
	found, err := net.Interfaces()
	if err != nil {
		return machineID, nil
	}
	by := map[string][]string{}
	for _, i := range found {
		list, err := i.Addrs()
		if err != nil {
			continue // it went meanwhile
		}
		for _, a := range list {
			if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
				by[i.Name] = append(by[i.Name], n.IP.String())
			}
		}
	}
	return machineID, outward(netClass, by)
}

// identityAt returns the identity of a machine whose agent listens there. An agent that listens on one address only has
// that address: others of the machine are those of other agents, too.
func identityAt(listen string) func() (machineID string, addresses []string) {
	return func() (string, []string) {
		machineID, addresses := ownIdentity()
		if at, err := netip.ParseAddrPort(listen); err == nil && !at.Addr().IsUnspecified() {
			addresses = []string{at.Addr().String()}
		}
		return machineID, addresses
	}
}

// outward returns the addresses of those interfaces that lead out of the machine, in order. Interfaces that serve only
// programs of the machine itself, such as bridges and tunnels of Docker, libvirt and Kubernetes, have the same address in
// every clone, which is fine. Where they cannot be distinguished, as in a container, all count.
func outward(class string, by map[string][]string) []string {
	var all, out []string
	for name, addresses := range by {
		all = append(all, addresses...)
		if onDevice(class, name, stackMax) {
			out = append(out, addresses...)
		}
	}
	if len(out) == 0 {
		out = all
	}
	slices.Sort(out)
	return out
}

// stackMax bounds how many interfaces are looked at one below the other: a bridge over a VLAN over a bond has three.
const stackMax = 8

// onDevice reports whether an interface is a device, or a bridge, bond or VLAN over one. A tunnel over one is another network.
func onDevice(class, name string, deep int) bool {
	dir := filepath.Join(class, name)
	if _, err := os.Stat(filepath.Join(dir, "device")); err == nil {
		return true
	}
	event, err := os.ReadFile(filepath.Join(dir, "uevent"))
	if err != nil || deep == 0 {
		return false
	}
	if !slices.ContainsFunc(strings.Fields(string(event)), func(line string) bool {
		return slices.Contains([]string{"DEVTYPE=bridge", "DEVTYPE=bond", "DEVTYPE=vlan"}, line)
	}) {
		return false
	}
	below, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(below, func(e os.DirEntry) bool {
		lower, ok := strings.CutPrefix(e.Name(), "lower_")
		return ok && onDevice(class, lower, deep-1)
	})
}
