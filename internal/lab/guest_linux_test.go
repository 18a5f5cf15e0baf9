package lab_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/lab/labtest"
	"github.com/braggdev/bragg/internal/testreq"
)

// The first process of the guest: address by DHCP, a disk, and an echo on port 7 whose first line tells the disk's size.
const guestInit = `#!/bin/busybox sh
B=/bin/busybox
$B mkdir -p /proc /sys /dev
$B mount -t proc proc /proc; $B mount -t sysfs sys /sys; $B mount -t devtmpfs dev /dev
for m in $($B cat /modules/order); do $B insmod /modules/$m; done
until [ -b /dev/sda ]; do $B sleep 0.1; done
$B ifconfig lo up; $B ifconfig eth0 up
$B udhcpc -i eth0 -q -t 100 -T 1 -s /dhcp
echo up
exec $B nc -ll -p 7 -e /serve
`

const guestDHCP = `#!/bin/busybox sh
[ "$1" = bound ] && /bin/busybox ifconfig $interface $ip netmask $subnet
exit 0
`

const guestServe = `#!/bin/busybox sh
/bin/busybox dd if=/dev/zero of=/dev/sda bs=4k count=1 conv=fsync 2>/dev/null && echo disk $(/bin/busybox blockdev --getsize64 /dev/sda)
exec /bin/busybox cat
`

var guestModules = []string{"virtio_pci", "virtio_net", "virtio_scsi", "sd_mod"}

// buildGuest makes the folder of a template: kernel and initramfs.
func buildGuest(t *testing.T) string {
	t.Helper()
	dir, kernel := t.TempDir(), testreq.UnpackKernel(t)
	order := kernel.Order(t, guestModules...)
	files := map[string]string{"bin/busybox": testreq.Program(t, "busybox")}
	for _, name := range order {
		files["modules/"+name] = kernel.Modules[name]
	}
	testreq.WriteInitramfs(t, filepath.Join(dir, "initramfs"), files, map[string]string{
		"init": guestInit, "dhcp": guestDHCP, "serve": guestServe, "modules/order": strings.Join(order, "\n"),
	})
	if err := os.Rename(kernel.Image, filepath.Join(dir, "vmlinuz")); err != nil {
		t.Fatal(err)
	}
	return dir
}

const diskBytes = 8 << 20

// guestXML is a guest as providers define it, for TCG: a disk on virtio-scsi, in the pool, and a card on the network.
func guestXML(l *lab.Lab, name, mac string) string {
	template := filepath.Join(l.TemplateDir(), "guest")
	return fmt.Sprintf(`<domain type='qemu'>
  <name>%s</name><memory unit='MiB'>128</memory><vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>%s/vmlinuz</kernel><initrd>%s/initramfs</initrd><cmdline>console=ttyS0 panic=-1</cmdline>
  </os>
  <features><acpi/></features>
  <cpu mode='custom' match='exact'><model>qemu64</model></cpu>
  <devices>
    <controller type='scsi' model='virtio-scsi'/>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='none'/><source file='%s'/><target dev='sda' bus='scsi'/>
    </disk>
    <interface type='network'><mac address='%s'/><source network='%s'/><model type='virtio'/></interface>
    <serial type='file'><source path='%s.console' append='on'/></serial>
  </devices>
</domain>`, name, template, template, filepath.Join(l.PoolDir(), name), mac, lab.PoolName, filepath.Join(l.Dir, "shared", name))
}

func virsh(t *testing.T, h lab.Host, words ...string) (string, error) {
	t.Helper()
	var faults bytes.Buffer
	cmd := exec.CommandContext(t.Context(), testreq.Program(t, "virsh"), append([]string{"--quiet", "--connect", h.URI()}, words...)...)
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("virsh %q: %w: %s", words, err, faults.Bytes())
	}
	return strings.TrimSpace(string(out)), err
}

func mustVirsh(t *testing.T, h lab.Host, words ...string) string {
	t.Helper()
	out, err := virsh(t, h, words...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// startGuest makes a disk and starts a guest on a host.
func startGuest(t *testing.T, l *lab.Lab, h lab.Host, name, mac string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".xml")
	if err := os.WriteFile(path, []byte(guestXML(l, name, mac)), 0o600); err != nil {
		t.Fatal(err)
	}
	mustVirsh(t, h, "vol-create-as", lab.PoolName, name, fmt.Sprint(diskBytes), "--format", "raw")
	mustVirsh(t, h, "define", path)
	mustVirsh(t, h, "start", name)
}

// leaseOf returns the address that DHCP gave to a card.
func leaseOf(t *testing.T, l *lab.Lab, mac string) string {
	t.Helper()
	text, err := os.ReadFile(l.LeaseFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[1] == mac {
			return fields[2]
		}
	}
	return ""
}

// talk is a connection to a guest's echo that stays.
type talk struct {
	net.Conn
	lines *bufio.Reader
}

// ask sends a line and returns whether it came back.
func (c *talk) ask(line string) bool {
	const patience = 3 * time.Minute // against hanging
	if err := errors.Join(c.SetDeadline(time.Now().Add(patience))); err != nil {
		return false
	}
	if _, err := fmt.Fprintln(c, line); err != nil {
		return false
	}
	back, err := c.lines.ReadString('\n')
	return err == nil && back == line+"\n"
}

// call connects to a guest once it is up, and checks that it could write to its disk.
func call(t *testing.T, l *lab.Lab, mac string) *talk {
	t.Helper()
	var c *talk
	eventually(t, "the guest "+mac+" answers", func() bool {
		address := leaseOf(t, l, mac)
		if address == "" {
			return false
		}
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, "7"), time.Second)
		if err == nil {
			c = &talk{conn, bufio.NewReader(conn)}
		}
		return err == nil
	})
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if first, err := c.lines.ReadString('\n'); err != nil || first != fmt.Sprintf("disk %d\n", diskBytes) {
		t.Fatalf("the guest says %q, %v", first, err)
	}
	return c
}

// Two guests boot on one host and get addresses. One migrates to the other host during a connection to it. The power of that
// host is cut: this guest is gone at once and the other keeps running. When the host is back, it starts what is marked for
// it.
func TestGuests(t *testing.T) {
	short(t)
	template := buildGuest(t)
	l := labtest.New(t, lab.Options{Templates: map[string]string{"guest": template}})
	t.Cleanup(func() {
		if t.Failed() {
			consoles, _ := filepath.Glob(filepath.Join(l.Dir, "shared", "*.console"))
			for _, c := range consoles {
				text, _ := os.ReadFile(c)
				t.Logf("%s:\n%s", c, text[max(0, len(text)-2000):])
			}
		}
	})
	a, b := l.Hosts[0], l.Hosts[1]
	const mover, stayer = "02:00:00:00:01:01", "02:00:00:00:01:02"
	startGuest(t, l, a, "mover", mover)
	startGuest(t, l, a, "stayer", stayer)
	moves, stays := call(t, l, mover), call(t, l, stayer)
	if !moves.ask("here") || !stays.ask("here") {
		t.Fatal("guests do not answer")
	}
	mustVirsh(t, a, "migrate", "--live", "--unsafe", "--persistent", "--undefinesource", "mover", b.URI())
	if on := mustVirsh(t, b, "list", "--name"); on != "mover" {
		t.Errorf("on host-2: %q", on)
	}
	if on := mustVirsh(t, a, "list", "--name"); on != "stayer" {
		t.Errorf("on host-1: %q", on)
	}
	if !moves.ask("there") {
		t.Error("the guest does not answer at its new host")
	}
	mustVirsh(t, b, "autostart", "mover")

	bmc := newBMC(t, l, 1)
	bmc.reset("ForceOff")
	if left := guestProcesses(t, l, "mover"); len(left) != 0 || bmc.power() != "Off" {
		t.Errorf("power is %s, and there are %q", bmc.power(), left)
	}
	if _, err := virsh(t, b, "list"); err == nil {
		t.Error("libvirt answers without power")
	}
	if !stays.ask("still here") || len(guestProcesses(t, l, "stayer")) != 1 {
		t.Error("the guest of the other host was cut too")
	}
	bmc.reset("On")
	if err := l.WaitUp(t.Context(), b.Name); err != nil {
		t.Fatal(err)
	}
	call(t, l, mover)
	if on := mustVirsh(t, b, "list", "--name"); on != "mover" {
		t.Errorf("on host-2 after the cut: %q", on)
	}

	newBMC(t, l, 0).reset("ForceRestart")
	if err := l.WaitUp(t.Context(), a.Name); err != nil {
		t.Fatal(err)
	}
	if on := mustVirsh(t, a, "list", "--all", "--name"); on != "stayer" || len(guestProcesses(t, l, "stayer")) != 0 {
		t.Errorf("on host-1 after the cut: %q", on)
	}
}

func guestProcesses(t *testing.T, l *lab.Lab, name string) []string {
	t.Helper()
	var found []string
	for _, p := range testreq.ProcessesNaming(t, filepath.Join(l.PoolDir(), name)) {
		if strings.Contains(p, "qemu") {
			found = append(found, p)
		}
	}
	return found
}
