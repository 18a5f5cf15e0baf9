package blockdev

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// DiskOf returns the path of the block device that stands for the same disk as path: for a generic SCSI device (/dev/sg0)
// the disk's, for everything else path itself. What is said, proven and held of the disk then holds for the other name too.
func DiskOf(path string) (string, error) {
	kind, number, err := kindAt(path)
	if err != nil || kind != Character {
		return path, nil // whoever opens it says what is wrong with it
	}
	s := host()
	name, err := s.diskOfGeneric(number)
	if err != nil || name == "" {
		return path, err
	}
	disk := filepath.Join(s.dev, name)
	kind, number, err = kindAt(disk)
	switch {
	case err != nil:
		return "", err
	case kind != Block || s.attribute(name, "dev") != number.String():
		return "", fmt.Errorf("%s is not the device that the kernel calls so", disk)
	}
	return disk, nil
}

// SCSIDiskOf says what an open block device is as a SCSI disk, and an error where SCSI commands must not go to it.
func SCSIDiskOf(f *os.File) (SCSIDisk, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return SCSIDisk{}, err
	}
	if kindOf(st.Mode) != Block {
		return SCSIDisk{}, fmt.Errorf("a %s is no SCSI disk", kindOf(st.Mode))
	}
	return host().scsi(numberOf(st.Rdev))
}
