package hostvm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each byte that enters or leaves a machine counts once.
func TestInterfacesThatCount(t *testing.T) {
	t.Parallel()
	sys := t.TempDir()
	for _, path := range []string{
		"lo", "eth0/device", "eth1/device", "eth1v0/device/physfn", "bond0", "bond0.100", "br0", "vnet3", "tap0", "docker0", "veth1@if2", "wg0",
	} {
		if err := os.MkdirAll(filepath.Join(sys, path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for names, want := range map[string]string{
		"lo eth0 eth1 eth1v0 bond0 bond0.100 br0 vnet3 tap0 docker0 wg0": "eth0 eth1",
		"lo eth0 eth9":         "eth0", // an interface without a description is not hardware
		"lo veth1 wg0":         "veth1 wg0",
		"lo eth1v0 wg0":        "eth1v0 wg0", // the namespace of a container that has no port of its own
		"lo":                   "",
		"":                     "",
		"veth1 ../../etc eth1": "eth1",
	} {
		got := outward(sys, strings.Fields(names))
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("of %q count %q, want %q", names, got, want)
		}
	}
	if got := rate(4096, 1024, 1); got != 0 {
		t.Errorf("a counter that went away is a rate of %v", got)
	}
	if got := rate(1024, 4096, 2); got != 1.5 {
		t.Errorf("got %v", got)
	}
}
