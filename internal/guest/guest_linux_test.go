package guest

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"golang.org/x/sys/unix"
)

// Disks are named in numeric order of their addresses; targets and hosts are not disks.
func TestSortedByAddress(t *testing.T) {
	t.Parallel()
	got := sortedByAddress([]string{"0:0:10:0", "host0", "0:0:2:0", "target0:0:2", "1:0:0:0", "0:0:2:16384", "a:b:c:d", "0:0:0:0"})
	if want := []string{"0:0:0:0", "0:0:2:0", "0:0:2:16384", "0:0:10:0", "1:0:0:0"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPowerButton(t *testing.T) {
	t.Parallel()
	event := func(kind, code uint16, value uint32) (e [eventBytes]byte) {
		binary.NativeEndian.PutUint16(e[16:], kind)
		binary.NativeEndian.PutUint16(e[18:], code)
		binary.NativeEndian.PutUint32(e[20:], value)
		return e
	}
	if !isPress(event(1, 116, 1)) {
		t.Error("a press is not seen")
	}
	for _, e := range [][eventBytes]byte{event(1, 116, 0), event(0, 0, 0), event(1, 142, 1)} { // release, sync, sleep
		if isPress(e) {
			t.Errorf("%v counts as a press", e)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pressed := make(chan outcome, 1)
	done := make(chan struct{})
	go func() { defer close(done); watchButton(r, pressed) }()
	for range 3 { // impatience changes nothing
		press := event(1, 116, 1)
		if _, err := w.Write(press[:]); err != nil {
			t.Fatal(err)
		}
	}
	if o := <-pressed; o.reboot || o.reason == "" {
		t.Errorf("got %+v", o)
	}
	_ = w.Close()
	<-done
}

func TestArguments(t *testing.T) {
	t.Parallel()
	got := readArguments("BOOT_IMAGE=/x bragg.address=10.0.2.9/24 quiet bragg.gateway=10.0.2.1 bragg.seed_within=3s bragg.unknown=1\n")
	if got != (arguments{address: "10.0.2.9/24", gateway: "10.0.2.1", seedWithin: 3 * time.Second}) {
		t.Errorf("got %+v", got)
	}
	for _, line := range []string{"", "bragg.seed_within=soon", "bragg.seed_within=-1s", "bragg.seed_within"} {
		if got := readArguments(line); got != (arguments{seedWithin: seedWithinDefault}) {
			t.Errorf("%q gives %+v", line, got)
		}
	}
}

// Only a crash is worth another try: an agent that ended by itself has said why.
func TestCrashed(t *testing.T) {
	t.Parallel()
	for status, want := range map[unix.WaitStatus]bool{0: false, 64 << 8: false, 2 << 8: true, 9: true, 11: true} {
		if crashed(status) != want {
			t.Errorf("%#x: crashed is %v", int(status), !want)
		}
	}
}

func TestLease(t *testing.T) {
	t.Parallel()
	ack, err := dhcpv4.New(dhcpv4.WithYourIP(net.IPv4(10, 1, 2, 3)))
	if err != nil {
		t.Fatal(err)
	}
	if a := addressOf(ack).String(); a != "10.1.2.3/8" || gatewayOf(ack) != nil || renewAfter(ack) != leaseDefault/2 {
		t.Errorf("a poor answer gives %s, %v, %s", a, gatewayOf(ack), renewAfter(ack))
	}
	for _, o := range []dhcpv4.Option{
		dhcpv4.OptSubnetMask(net.CIDRMask(24, 32)), dhcpv4.OptRouter(net.IPv4(10, 1, 2, 1)), dhcpv4.OptIPAddressLeaseTime(time.Second),
	} {
		ack.UpdateOption(o)
	}
	if a := addressOf(ack).String(); a != "10.1.2.3/24" || !gatewayOf(ack).Equal(net.IPv4(10, 1, 2, 1)) || renewAfter(ack) != leaseMin {
		t.Errorf("got %s, %v, %s", a, gatewayOf(ack), renewAfter(ack))
	}
	ack.UpdateOption(dhcpv4.OptIPAddressLeaseTime(30 * time.Minute))
	now := time.Now()
	for passed, want := range map[time.Duration]time.Duration{
		15 * time.Minute: 450 * time.Second, 25 * time.Minute: 150 * time.Second, 29*time.Minute + 50*time.Second: leaseMin, time.Hour: leaseMin,
	} {
		if got := againAfter(&nclient4.Lease{ACK: ack, CreationTime: now.Add(-passed)}, now); got != want {
			t.Errorf("after %v of 30 m it is tried again in %v, want %v", passed, got, want)
		}
	}
}

// Not every file with the label is a seed, and not every seed is labelled in capitals.
func TestLabel(t *testing.T) {
	t.Parallel()
	sector := func(label string) []byte {
		b := make([]byte, 17*2048)
		b[16*2048] = 1
		copy(b[16*2048+1:], "CD001")
		copy(b[16*2048+40:], label)
		return b
	}
	wrongType := sector("cidata")
	wrongType[16*2048] = 2
	for name, tt := range map[string]struct {
		text []byte
		want bool
	}{
		"ours": {sector("cidata                          "), true}, "capitals": {sector("CIDATA"), true},
		"other": {sector("cidata2"), false}, "short": {sector("cidata")[:16*2048+60], false}, "type": {wrongType, false}, "empty": {nil, false},
	} {
		path := filepath.Join(t.TempDir(), "disk")
		if err := os.WriteFile(path, tt.text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := labelled(path); got != tt.want {
			t.Errorf("%s: labelled is %v", name, got)
		}
	}
	if labelled(filepath.Join(t.TempDir(), "absent")) {
		t.Error("an absent device has a label")
	}
}

// A test does not run as PID 1.
func TestIsInit(t *testing.T) {
	t.Parallel()
	if IsInit() {
		t.Error("this is the first process of a machine")
	}
}
