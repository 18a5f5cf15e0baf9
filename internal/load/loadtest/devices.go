package loadtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/testreq"
)

// DeviceCase is one state of a block device, and the expected result of writing to it.
type DeviceCase struct {
	Title  string
	Make   func(t *testing.T, device string) // from an empty loop device of DeviceBytes
	Change func(c *load.Consent)             // by default the consent proves the device by size and backing file
	Want   []string                          // codes of the refusal's reasons; nil: it is written to

	KernelWrites bool // outside the range of the load, as it does to swap whenever it likes
}

// loadFrom and loadTo are the range that the load of a device case writes.
const loadFrom, loadTo = 2 << 20, 3 << 20

// DeviceCases are the states that every way of writing to a block device must treat the same: package blockdev tests the
// rules themselves, with many more cases.
func DeviceCases() []DeviceCase {
	ext4 := func(t *testing.T, device string) { command(t, "mkfs.ext4", "-q", "-F", device) }
	return []DeviceCase{
		{Title: "proved by size and backing file"},
		{Title: "made by the run", Change: func(c *load.Consent) { *c = load.Consent{Own: true, SizeBytes: DeviceBytes} }, Make: ext4},
		{Title: "signature that was named", Make: ext4, Change: func(c *load.Consent) { c.Overwrite = []string{"ext4"} }},
		{Title: "no consent", Change: func(c *load.Consent) { *c = load.Consent{} }, Want: []string{"unproven"}},
		{Title: "size only", Change: func(c *load.Consent) { c.Link = "" }, Want: []string{"unproven"}},
		{Title: "not the named serial number", Change: func(c *load.Consent) { c.Serial = "S4EVNF0M" }, Want: []string{"wrong-device"}},
		{Title: "not the named WWN", Change: func(c *load.Consent) { c.WWN = "naa.5000c500a1b2c3d4" }, Want: []string{"wrong-device"}},
		{Title: "not the named size", Change: func(c *load.Consent) { c.SizeBytes-- }, Want: []string{"wrong-device"}},
		{Title: "not the size that the run made", Change: func(c *load.Consent) { *c = load.Consent{Own: true, SizeBytes: 2 * DeviceBytes} },
			Want: []string{"wrong-device"}},
		{Title: "signed", Make: ext4, Want: []string{"signature"}},
		{Title: "unknown data", Make: func(t *testing.T, device string) { writeAt(t, device, 4096, "a database's own format") },
			Want: []string{"data"}},
		{Title: "mounted", Want: []string{"mounted"}, Change: func(c *load.Consent) { c.Overwrite = []string{"ext4"} },
			Make: func(t *testing.T, device string) {
				ext4(t, device)
				mount(t, device)
			}},
		{Title: "made by the run and mounted", Want: []string{"mounted"},
			Change: func(c *load.Consent) { *c = load.Consent{Own: true, SizeBytes: DeviceBytes} },
			Make: func(t *testing.T, device string) {
				ext4(t, device)
				mount(t, device)
			}},
		{Title: "swap", Want: []string{"swap"}, Change: func(c *load.Consent) { c.Overwrite = []string{"swap"} },
			Make: func(t *testing.T, device string) {
				command(t, "mkswap", device)
				command(t, "swapon", device)
				t.Cleanup(func() { command(t, "swapoff", device) })
			}, KernelWrites: true},
		{Title: "held", Want: []string{"held"}, Make: func(t *testing.T, device string) { testreq.Loop(t, device) }},
	}
}

// Workload is a workload on an empty loop device, in the state of c.
func (c DeviceCase) Workload(t *testing.T, config string) load.Workload {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir()) // as the kernel names a backing file
	if err != nil {
		t.Fatal(err)
	}
	backing := filepath.Join(dir, "backing")
	if err := os.WriteFile(backing, make([]byte, DeviceBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	device := testreq.Loop(t, backing)
	if c.Make != nil {
		c.Make(t, device)
	}
	consent := load.Consent{SizeBytes: DeviceBytes, Link: backing}
	if c.Change != nil {
		c.Change(&consent)
	}
	return load.Workload{
		Name: "contract", Group: "group", VM: "group-0001", Generator: "under-test", ConfigName: "contract.fio", Config: config,
		Devices: []load.Device{{Name: "/dev/sdb", Path: device, SizeBytes: DeviceBytes, Consent: consent}},
	}
}

// CheckRefusal checks that err is a refusal for exactly these reasons, with the matching exit code.
func CheckRefusal(t *testing.T, err error, want []string) {
	t.Helper()
	var refusal *blockdev.Refusal
	if !errors.As(err, &refusal) {
		t.Errorf("%v, want a refusal for %v", err, want)
		return
	}
	var codes []string
	for _, r := range refusal.Reasons {
		codes = append(codes, r.Code)
	}
	if slices.Sort(codes); !slices.Equal(codes, slices.Sorted(slices.Values(want))) || diag.ExitCode(err) != diag.ExitRefused {
		t.Errorf("refused for %v with exit code %d, want %v: %v", codes, diag.ExitCode(err), want, err)
	}
}

// A block device is written to only with consent, and is held during the load.
func testBlockDevices(t *testing.T, s suite) {
	for _, c := range DeviceCases() {
		t.Run(c.Title, func(t *testing.T) { s.testBlockDevice(t, c) })
	}
	t.Run("two loads on one device", s.testShared)
}

func (s suite) testBlockDevice(t *testing.T, c DeviceCase) {
	w := s.changed(c.Workload(t, "[job]\nfilename=/dev/sdb\nrw=write\nbs=64k\nsize=1m\noffset=2m\nioengine=libaio\ndirect=1\n"))
	before := read(t, w.Devices[0].Path)
	nothingLeft := NothingLeft(t)
	instance, err := s.Generator.Prepare(t.Context(), w)
	if c.Want != nil {
		if err == nil {
			_ = instance.Close()
		}
		CheckRefusal(t, err, c.Want)
		nothingLeft()
		after := read(t, w.Devices[0].Path)
		if c.KernelWrites {
			before, after = before[loadFrom:loadTo], after[loadFrom:loadTo]
		}
		if string(after) != string(before) {
			t.Error("it was written to")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", w.Devices[0].Path).CombinedOutput(); err == nil {
		t.Errorf("while a load holds the device it can be formatted: %s", out)
	}
	var log Log
	if err := instance.Run(t.Context(), &log); err != nil {
		t.Error(err)
	}
	nothingLeft()
	if n := Add(log.Intervals()).Directions[1].Operations; n != 16 {
		t.Errorf("%d writes, want 16", n)
	}
	if after := read(t, w.Devices[0].Path); string(after[2<<20:3<<20]) == string(before[2<<20:3<<20]) {
		t.Error("it was not written to")
	}
}

// Loads of one process share a device. Each must identify it.
func (s suite) testShared(t *testing.T) {
	first := s.changed(DeviceCase{}.Workload(t, "[job]\nfilename=/dev/sdb\nrw=write\nbs=64k\nsize=1m\n"))
	second := first
	second.Devices = slices.Clone(first.Devices)
	nothingLeft := NothingLeft(t)
	one, err := s.Generator.Prepare(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.Generator.Prepare(t.Context(), second)
	if err != nil {
		t.Fatalf("a second load on the device: %v", err)
	}
	second.Devices[0].Consent.Serial = "S4EVNF0M"
	_, err = s.Generator.Prepare(t.Context(), second)
	CheckRefusal(t, err, []string{"wrong-device"})
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	var log Log
	if err := two.Run(t.Context(), &log); err != nil {
		t.Error(err)
	}
	nothingLeft()
}

func mount(t *testing.T, device string) {
	t.Helper()
	dir := t.TempDir()
	// Read-only: a file system that is mounted writable may write at any time.
	command(t, "mount", "-o", "ro", device, dir)
	t.Cleanup(func() { command(t, "umount", dir) })
}

func writeAt(t *testing.T, path string, offset int64, content string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte(content), offset)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
