package blockdev

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestExamineLoop(t *testing.T) {
	r := newRig(t)
	path := r.file(64 * mib)
	device := r.loopOn(path, "--sector-size", "4096", "--partscan")
	part := r.partition(device, mib, 32*mib)
	s := r.look(device)
	name, partName := filepath.Base(device), filepath.Base(part)
	if s.Kind != Block || s.Number.Major != 7 || s.SizeBytes != 64*mib || s.Busy || len(s.Uses) > 0 || len(s.Faults) > 0 {
		t.Errorf("state %+v", s)
	}
	if d := s.Device; d.Name != name || d.Backing != path || d.LogicalBlockBytes != 4096 || d.Partition || d.Disk != name ||
		!slices.Equal(d.Partitions, []Partition{{partName, mib, 32 * mib}}) {
		t.Errorf("device %+v", d)
	}
	if !s.Content.HeadZero || !s.Content.TailZero || s.Content.Claim != nil || len(s.Content.Signatures) > 0 {
		t.Errorf("content %+v", s.Content)
	}
	p := r.look(part)
	if !p.Device.Partition || p.Device.Disk != name || p.SizeBytes != 32*mib || p.Device.Sequence != s.Device.Sequence {
		t.Errorf("partition %+v", p)
	}
}

// After a claim the kernel has forgotten the partitions, and the same controller may write again without a word.
func TestClaimOfAPartitionedDisk(t *testing.T) {
	r := newRig(t)
	device := r.loop(64*mib, "--partscan")
	r.run("addpart", device, "1", fmt.Sprint(20*mib/sectorBytes), fmt.Sprint(32*mib/sectorBytes))
	r.ext4(device + "p1")
	if names := r.look(device).SignatureNames(); !slices.Equal(names, []string{"ext4"}) {
		t.Errorf("before: %v", names)
	}
	r.claim(device, "ours")
	after := r.look(device)
	if len(after.Device.Partitions) > 0 || len(after.Content.Signatures) > 0 {
		t.Errorf("after: %+v, %+v", after.Device.Partitions, after.Content.Signatures)
	}
	f, _, err := Open(device, Consent{Controller: "ours"}, os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// What a usual disk of each kind shows.
func TestDeviceFromSysfs(t *testing.T) {
	tests := []struct {
		title string
		make  func(tree) Number
		want  Device
	}{
		{"NVMe", func(k tree) Number {
			k.device("nvme0n1", "259:0", gib, map[string]string{
				"device/serial": "S4EVNF0M ", "device/model": "Example 1000 ", "wwid": "eui.0025385b71b0c6d2",
				"queue/rotational": "0", "queue/physical_block_size": "4096", "diskseq": "9",
			})
			k.link("../../nvme0n1", "dev/disk/by-id/nvme-Example_S4EVNF0M")
			k.link("../../nvme0n1p1", "dev/disk/by-id/nvme-Example_S4EVNF0M-part1")
			return Number{259, 0}
		}, Device{
			Name: "nvme0n1", Disk: "nvme0n1", Model: "Example 1000", Serial: "S4EVNF0M", WWN: "eui.0025385b71b0c6d2",
			LogicalBlockBytes: 512, PhysicalBlockBytes: 4096, Sequence: 9, Links: []string{"/dev/disk/by-id/nvme-Example_S4EVNF0M"},
		}},
		{"SCSI, by its page of the serial number", func(k tree) Number {
			k.device("sda", "8:0", gib, map[string]string{"device/vpd_pg80": "\x00\x80\x00\x0cWD-WX12345  garbage", "device/wwid": "naa.5000c500a1b2c3d4"})
			return Number{8, 0}
		}, Device{Name: "sda", Disk: "sda", Serial: "WD-WX12345", WWN: "naa.5000c500a1b2c3d4", LogicalBlockBytes: 512, Rotational: true}},
		{"USB bridge, by udev", func(k tree) Number {
			k.device("sdb", "8:16", gib, nil)
			k.write("run/udev/data/b8:16", "S:disk/by-id/usb-x\nE:ID_SERIAL_SHORT=0123\nE:ID_WWN=0x5000\n")
			return Number{8, 16}
		}, Device{Name: "sdb", Disk: "sdb", Serial: "0123", WWN: "0x5000", LogicalBlockBytes: 512, Rotational: true}},
		{"partition of virtio", func(k tree) Number {
			k.device("vda", "254:0", gib, map[string]string{"serial": "disk-7"})
			k.partition("vda", "vda2", "254:2", 1<<20, 1<<20)
			return Number{254, 2}
		}, Device{Name: "vda2", Disk: "vda", Partition: true, Serial: "disk-7", LogicalBlockBytes: 512, Rotational: true}},
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			k := newTree(t)
			s := k.system().describe(test.make(k))
			if !reflect.DeepEqual(s.Device, test.want) {
				t.Errorf("device %+v\nwant   %+v", s.Device, test.want)
			}
		})
	}
}

// All reasons against a device are reported, each with advice.
func TestRefusalIsComplete(t *testing.T) {
	k := newTree(t)
	k.rootOnLVM()
	s := k.look(Number{8, 0}, sampleOf("GPT"))
	err := Check(s, Consent{Serial: "OTHER"})
	want := `refuse to write to "/dev/sda": sda3 is held by dm-0, sharing its data with this device (sda3 → sda); ` +
		`dm-0 is held by dm-1, sharing its data with this device (dm-0 → sda3 → sda); ` +
		`dm-1 is mounted on /, sharing its data with this device (dm-1 → dm-0 → sda3 → sda); ` +
		`sda1 is mounted on /boot, sharing its data with this device (sda1 → sda); ` +
		`its serial number is S4EVNF0M and not OTHER; it carries a GPT partition table (byte 512)`
	if err == nil || sorted(err.Error()) != sorted(want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func sorted(text string) string {
	head, rest, _ := strings.Cut(text, ": ")
	parts := strings.Split(rest, "; ")
	slices.Sort(parts)
	return head + ": " + strings.Join(parts, "; ")
}

// A root disk may carry hundreds of mounts.
func TestManyMountsAreAbridged(t *testing.T) {
	k := newTree(t)
	k.device("sda", "8:0", gib, map[string]string{"serial": "S4EVNF0M"})
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("8:0 / /pods/%d rw - ext4 /dev/sda rw", i))
	}
	k.mounts(lines...)
	s := k.look(Number{8, 0}, image{})
	if len(s.Uses) != 100 {
		t.Errorf("%d uses", len(s.Uses))
	}
	err := Check(s, consentTo(s))
	if err == nil || !strings.HasSuffix(err.Error(), "it is mounted on /pods/0, /pods/1, /pods/2, /pods/3 and 96 more") {
		t.Errorf("%v", err)
	}
}

func FuzzMountinfo(f *testing.F) {
	f.Add("30 1 8:0 / /a\\040b rw shared:1 - ext4 /dev/sda rw\n")
	f.Add("30 1 0:45 / / rw - btrfs /dev/sdb rw\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		k := newTree(t)
		k.device("sda", "8:0", gib, nil)
		k.write("proc/self/mountinfo", text)
		s := k.system().describe(Number{8, 0})
		if _, err := k.system().mounts(); (err != nil) != (len(s.Faults) > 0) {
			t.Errorf("mounts %v, faults %v", err, s.Faults)
		}
	})
}
