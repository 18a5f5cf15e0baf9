package image_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/agent/pool"
	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// Two clones of one image come up with names, addresses and machine-ids of their own, do real I/O on the disk that a
// scenario means, and are off after a shutdown by ACPI.
func TestGuests(t *testing.T) {
	if testing.Short() {
		t.Skip("boots guests")
	}
	i, a := built(t), authority(t)
	// The sizes tell the disks apart: the guest must call the first one sdb, the seed being sda.
	disks := []string{disk(t, 8<<20), disk(t, 16<<20), disk(t, 24<<20)}
	one := start(t, i, hardware{
		seed: seedOf(t, a, image.Guest{VM: "DB 1", InstanceID: "run-7-db-1"}), disks: disks,
	})
	two := start(t, i, hardware{
		address: "10.0.2.77", mac: "52:54:00:00:00:02",
		seed: seedOf(t, a, image.Guest{VM: "DB 2", InstanceID: "run-7-db-2", Network: []image.Link{
			{MAC: "52:54:00:00:00:02", Address: "10.0.2.77/24", Gateway: "10.0.2.2", MTU: 1400},
		}}),
	})
	hellos := map[string]wire.Hello{}
	for vm, m := range map[string]*machine{"DB 1": one, "DB 2": two} {
		hello, err := m.client(a, vm).Hello(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		hellos[vm] = hello
	}
	for vm, want := range map[string][2]string{"DB 1": {"10.0.2.15", "run-7-db-1"}, "DB 2": {"10.0.2.77", "run-7-db-2"}} {
		h := hellos[vm]
		if h.VM != vm || h.Version != "1.2.3-test" || len(h.Addresses) == 0 || h.Addresses[0] != want[0] || h.MachineID != image.MachineID(want[1]) {
			t.Errorf("%s says %+v", vm, h)
		}
	}
	if shared := pool.SharedIdentities(hellos); len(shared) != 0 {
		t.Errorf("clones share %v", shared)
	}
	refuseLoads(t, one.client(a, "DB 1"))
	runLoad(t, one, one.client(a, "DB 1"))
	checkWritten(t, disks)
	for _, m := range []*machine{one, two} {
		m.command("system_powerdown")
		m.waitForEnd()
		if said := m.read(); !strings.Contains(said, "the power button was pressed: power off") || strings.Contains(said, "panic") {
			t.Errorf("the console says\n%s", said)
		}
	}
}

// An image of the same files has the same bytes.
func TestImageIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("unpacks a kernel")
	}
	one := built(t)
	program, err := agentBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := image.Build(image.Source{Package: kernelPackage, Agent: program}, dir); err != nil {
		t.Fatal(err)
	}
	two, err := image.Open(dir)
	if err != nil || two.Manifest != one.Manifest {
		t.Errorf("got %+v, want %+v, %v", two.Manifest, one.Manifest, err)
	}
}

// refuseLoads: an agent that has no list of devices, because its VM is its own, still writes only to the disk that was made
// for the run, as its size tells, and says why it refuses another.
func refuseLoads(t *testing.T, c *client.Client) {
	t.Helper()
	for want, consent := range map[string]load.Consent{
		"nothing proves": {}, "its size is 8388608 bytes and not 16777216": {Own: true, SizeBytes: 16 << 20},
		"its serial number is": {Own: true, SizeBytes: 8 << 20, Serial: "of another disk"},
	} {
		err := c.Run(t.Context(), load.Workload{
			Name: "refused", Group: "DB", VM: "DB 1", Generator: "native", ConfigName: "write.fio",
			Config:  "[load]\nfilename=/dev/sdb\nioengine=psync\nrw=write\nbs=64k\nsize=1m\ndirect=1\n",
			Devices: []load.Device{{Name: "/dev/sdb", Path: "/dev/sdb", SizeBytes: 8 << 20, Consent: consent}},
		}, load.SinkFunc(func(interval.Interval) { t.Errorf("%+v: something was done", consent) }))
		var userErr *diag.Error
		if !errors.As(err, &userErr) || userErr.Code != "unsafe-device" || !strings.Contains(userErr.Message, want) {
			t.Errorf("%+v: want %q, got %v", consent, want, err)
		}
	}
}

// runLoad writes to the first data disk and reads from it again.
func runLoad(t *testing.T, m *machine, c *client.Client) {
	t.Helper()
	const size = 8 << 20
	var mu sync.Mutex
	var read, wrote uint64
	for _, kind := range []string{"write", "randread"} {
		err := c.Run(t.Context(), load.Workload{
			Name: kind, Group: "DB", VM: "DB 1", Generator: "native", ConfigName: kind + ".fio",
			Config:  "[load]\nfilename=/dev/sdb\nioengine=io_uring\nrw=" + kind + "\nbs=64k\nsize=8m\niodepth=4\ndirect=1\n",
			Devices: []load.Device{{Name: "/dev/sdb", Path: "/dev/sdb", SizeBytes: size, Consent: load.Consent{Own: true, SizeBytes: size}}},
		}, load.SinkFunc(func(iv interval.Interval) {
			mu.Lock()
			defer mu.Unlock()
			read += iv.Directions[interval.Read].Bytes
			wrote += iv.Directions[interval.Write].Bytes
		}))
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
	}
	if len(m.engines) != 2 || strings.Contains(strings.Join(m.engines, " "), "psync") {
		t.Errorf("the load was driven by %q", m.engines) // where io_uring was refused
	}
	if read != size || wrote != size {
		t.Errorf("read %d bytes and wrote %d, want %d", read, wrote, size)
	}
}

// checkWritten looks at the disks from outside: only the first one was meant.
func checkWritten(t *testing.T, disks []string) {
	t.Helper()
	for n, path := range disks {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		empty := 0
		for block := range slices.Chunk(text, 64<<10) {
			if bytes.Count(block, []byte{0}) == len(block) {
				empty++
			}
		}
		if want := len(text) / (64 << 10); n == 0 && empty != 0 || n > 0 && empty != want {
			t.Errorf("disk %d: %d blocks of %d are empty", n, empty, want)
		}
	}
}

// Missing or invalid input is reported on the console, and the guest powers off. Nothing panics or retries forever.
func TestGuestsThatCannotWork(t *testing.T) {
	if testing.Short() {
		t.Skip("boots guests")
	}
	i, a := built(t), authority(t)
	good := seedOf(t, a, image.Guest{VM: "x", InstanceID: "x"})
	badKey := image.Guest{VM: "x", InstanceID: "x", Listen: ":7401"}
	badKey.Identity.Certificate, badKey.Identity.Key, badKey.Identity.Authority = []byte("no"), []byte("key"), []byte("here")
	keyless, err := image.Seed(badKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		hardware
		want string
	}{
		"no seed":     {hardware{arguments: "bragg.seed_within=2s", disks: []string{disk(t, 1<<20)}}, `no seed: none of the disks (/dev/sda) is labelled "cidata"`},
		"spoilt seed": {hardware{seed: bytes.Replace(good, []byte(`"version": 1`), []byte(`"version": 7`), 1)}, "seed on /dev/sda: read seed: version is 7"},
		"cut seed":    {hardware{seed: good[:40<<10]}, "seed on /dev/sda: "},
		"no key":      {hardware{seed: keyless}, "the agent ended with code"},
		"bad address": {hardware{seed: good, arguments: "bragg.address=10.0.0.1"}, "kernel command line: address"},
	} {
		t.Run(name, func(t *testing.T) {
			m := start(t, i, tt.hardware)
			m.waitForEnd()
			said := m.read()
			if !strings.Contains(said, tt.want) || !strings.Contains(said, ": power off") || strings.Contains(said, "panic") {
				t.Errorf("want %q, the console says\n%s", tt.want, said)
			}
		})
	}
}

// A network that is not there may come back: the guest says what it lacks, tries again, and can be switched off meanwhile.
func TestGuestWithoutNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("boots guests")
	}
	i, a := built(t), authority(t)
	seed := seedOf(t, a, image.Guest{VM: "x", InstanceID: "x"})
	m := start(t, i, hardware{seed: seed, address: "none"})
	m.waitFor("no network: no network interface found; trying again")
	m.command("system_powerdown")
	m.waitForEnd()

	// The interface exists, but no DHCP server answers on it.
	m = start(t, i, hardware{seed: seed, address: "none", devices: []string{
		"-netdev", "hubport,hubid=0,id=h", "-device", "virtio-net-pci,netdev=h,romfile=",
	}})
	m.waitFor("ask for an address")
	m.command("system_powerdown")
	m.waitForEnd()
}

// QEMU can hand in a seed without a disk, and the command line goes before the seed's network.
func TestSeedByFirmware(t *testing.T) {
	if testing.Short() {
		t.Skip("boots guests")
	}
	i, a := built(t), authority(t)
	path := t.TempDir() + "/document"
	if err := os.WriteFile(path, documentOf(t, seedOf(t, a, image.Guest{VM: "fw", InstanceID: "fw-1"})), 0o600); err != nil {
		t.Fatal(err)
	}
	m := start(t, i, hardware{
		devices: []string{"-fw_cfg", "name=opt/org.bragg/seed,file=" + path},
		address: "10.0.2.88", arguments: "bragg.address=10.0.2.88/24 bragg.gateway=10.0.2.2",
	})
	h, err := m.client(a, "fw").Hello(t.Context())
	if err != nil || h.VM != "fw" || len(h.Addresses) == 0 || h.Addresses[0] != "10.0.2.88" {
		t.Errorf("got %+v, %v", h, err)
	}
}

// documentOf extracts the document from a seed, which holds it contiguously.
func documentOf(t *testing.T, seed []byte) []byte {
	t.Helper()
	begin := bytes.Index(seed, []byte("{\n  \"version\""))
	end := bytes.Index(seed[begin:], []byte("\n}\n"))
	if begin < 0 || end < 0 {
		t.Fatal("the seed holds no document")
	}
	return seed[begin : begin+end+3]
}
