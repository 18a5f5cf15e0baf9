package blockdev

import (
	"fmt"
	"path/filepath"
	"strings"
)

// SCSIDisk is what must be known of a disk before SCSI commands go to it past its driver.
type SCSIDisk struct {
	Name             string // of the kernel: "sda"
	BlockBytes       int64  // logical
	TransferBytesMax int64  // of one command; 0: not known
}

// Named tells whether what somebody said of the device called name holds for the device at path: the same path, or the
// generic SCSI device of that disk.
func Named(name, path string) bool {
	if name == path {
		return true
	}
	disk, err := DiskOf(name)
	return err == nil && disk == path
}

// scsi says what a block device is as a SCSI disk. Only whole disks are: a command to a partition, and to what lies above
// a disk, would go to the disk itself, whose first block is another one.
func (s system) scsi(n Number) (SCSIDisk, error) {
	name := s.nameOfNumber(n)
	if name == "" {
		return SCSIDisk{}, fmt.Errorf("the kernel has no block device with the number %s", n)
	}
	if disk := s.diskOf(name); disk != name {
		return SCSIDisk{}, fmt.Errorf("%s is a partition, and SCSI commands count from the start of the disk: use /dev/%s with an offset", name, disk)
	}
	bus, err := filepath.EvalSymlinks(filepath.Join(s.folder(name), "device", "subsystem"))
	if err != nil || filepath.Base(bus) != "scsi" {
		return SCSIDisk{}, fmt.Errorf("%s is no SCSI disk", name)
	}
	switch kind := s.attribute(name, "device", "type"); kind {
	case "0", "14": // direct access, and its simplified form: SPC, "Peripheral device type"
	default:
		return SCSIDisk{}, fmt.Errorf("%s is a SCSI device of type %s, and no disk", name, first(kind, "unknown"))
	}
	return SCSIDisk{
		Name: name, BlockBytes: s.number(name, "queue", "logical_block_size"),
		TransferBytesMax: s.number(name, "queue", "max_hw_sectors_kb") << 10,
	}, nil
}

// diskOfGeneric finds the block device that a generic SCSI device is too: "" where the number is no generic SCSI device's,
// an error where it is no disk's.
func (s system) diskOfGeneric(n Number) (name string, err error) {
	folder, err := filepath.EvalSymlinks(filepath.Join(s.sys, "dev", "char", n.String()))
	if err != nil {
		return "", nil // a device without a place in sysfs is none of them
	}
	class, err := filepath.EvalSymlinks(filepath.Join(folder, "subsystem"))
	if err != nil || filepath.Base(class) != "scsi_generic" {
		return "", nil
	}
	disks := folderNames(filepath.Join(folder, "device", "block"))
	if len(disks) != 1 {
		return "", fmt.Errorf("%s is no disk: the kernel has %d block devices for it", filepath.Base(folder), len(disks))
	}
	return strings.ReplaceAll(disks[0], "!", "/"), nil
}
