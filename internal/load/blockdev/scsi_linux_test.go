package blockdev

import (
	"strings"
	"testing"
)

// scsiTree is a machine with a SCSI disk that has a partition, an optical drive, a tape, and a disk that is none of SCSI.
func scsiTree(t *testing.T) system {
	k := newTree(t)
	disk := map[string]string{"device/type": "0\n", "queue/max_hw_sectors_kb": "512\n"}
	k.device("sda", "8:0", gib, disk)
	k.device("sda/sda1", "8:1", gib/2, map[string]string{"partition": "1\n"})
	k.device("sr0", "11:0", gib, map[string]string{"device/type": "5\n"})
	k.device("vda", "254:0", gib, map[string]string{"device/type": "0\n"})
	k.write("sys/bus/scsi/x", "")
	k.write("sys/bus/virtio/x", "")
	for name, bus := range map[string]string{"sda": "scsi", "sr0": "scsi", "vda": "virtio"} {
		k.link(k.root+"/sys/bus/"+bus, "sys/devices/"+name+"/device/subsystem")
	}
	k.write("sys/class/scsi_generic/x", "")
	for name, number := range map[string]string{"sg0": "21:0", "sg1": "21:1"} {
		k.write("sys/devices/generic/"+name+"/dev", number)
		k.link(k.root+"/sys/class/scsi_generic", "sys/devices/generic/"+name+"/subsystem")
		k.link(k.root+"/sys/devices/generic/"+name, "sys/dev/char/"+number)
	}
	k.write("sys/devices/generic/sg0/device/block/sda/dev", "8:0")
	k.write("sys/devices/generic/sg1/device/scsi_tape/st0/dev", "9:0")
	k.write("sys/class/mem/x", "")
	k.write("sys/devices/virtual/mem/null/dev", "1:3")
	k.link(k.root+"/sys/class/mem", "sys/devices/virtual/mem/null/subsystem")
	k.link(k.root+"/sys/devices/virtual/mem/null", "sys/dev/char/1:3")
	return k.system()
}

// SCSI commands go to whole SCSI disks alone.
func TestOnlySCSIDisksTakeCommands(t *testing.T) {
	s := scsiTree(t)
	got, err := s.scsi(Number{8, 0})
	if want := (SCSIDisk{Name: "sda", BlockBytes: 512, TransferBytesMax: 512 << 10}); err != nil || got != want {
		t.Errorf("the disk: %+v, %v", got, err)
	}
	for number, why := range map[Number]string{
		{8, 1}: "use /dev/sda with an offset", {11, 0}: "type 5", {254, 0}: "no SCSI disk", {8, 16}: "no block device",
	} {
		if _, err := s.scsi(number); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", number, err, why)
		}
	}
}

// A generic device is the disk that has the same place, and nothing where there is none.
func TestDiskOfGenericDevice(t *testing.T) {
	s := scsiTree(t)
	for number, want := range map[Number]string{{21, 0}: "sda", {1, 3}: "", {21, 7}: ""} {
		if name, err := s.diskOfGeneric(number); name != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", number, name, err, want)
		}
	}
	if name, err := s.diskOfGeneric(Number{21, 1}); err == nil || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("a tape: %q, %v", name, err)
	}
	for _, path := range []string{"/dev/null", "/", "/nowhere"} {
		if got, err := DiskOf(path); got != path || err != nil {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}
