// Package blockdev identifies a path before anything is written to it, and refuses paths that hold data or are in use.
//
//	Examine(path)              → State: kind, identity, who uses it, what lies on it
//	Check(state, consent)      → nil, or an error that names everything found
//	Open(path, consent, flags) → both, then the same again on the opened descriptor
//
// It reads sysfs, procfs and the first and last parts of the device. It writes in one place only: Claim. It is not a
// partitioner and it repairs nothing. An unreadable fact counts as a reason to refuse.
package blockdev

import (
	"fmt"
	"slices"
)

// Kind is the type of a path after symbolic links are followed.
type Kind string

const (
	Regular   Kind = "regular file"
	Block     Kind = "block device"
	Character Kind = "character device"
	Other     Kind = "neither file nor device" // directory, pipe, socket
)

// Number is the number of a device.
type Number struct{ Major, Minor uint32 }

func (n Number) String() string { return fmt.Sprintf("%d:%d", n.Major, n.Minor) }

// State is what was found at a path at one moment. It is a plain value: nothing is open behind it.
type State struct {
	Path      string // as asked
	Node      string // with symbolic links followed
	Kind      Kind
	Number    Number // of a device
	File      FileID // of a regular file
	SizeBytes int64
	Device    Device // of a block device
	Uses      []Use
	Busy      bool // an exclusive open was refused: the device is in use, perhaps in another mount namespace
	Content   Content
	Faults    []string // what could not be found out
}

// FileID tells one file from another.
type FileID struct{ Device, Inode uint64 }

// Device is what sysfs and udev say of a block device.
type Device struct {
	Name               string // of the kernel: "sda1"
	Model, Serial, WWN string // of a partition: those of its disk
	Links              []string
	LogicalBlockBytes  int64
	PhysicalBlockBytes int64
	ReadOnly           bool
	Rotational         bool
	Sequence           uint64 // counts up with every disk that comes; 0 before Linux 5.15
	Partition          bool
	Disk               string // of a partition its disk, else its own name
	Partitions         []Partition
	Backing            string // the file or device below a loop device
}

// Partition is one that the kernel knows on a disk.
type Partition struct {
	Name       string
	StartBytes int64
	SizeBytes  int64
}

// Use is one way in which a device is in use.
type Use struct {
	Kind  UseKind
	What  string   // the mount point, the swap's name, the name of the holder
	Chain []string // from the device in use to the examined one, both named; one name: itself
}

// UseKind says how a device is in use.
type UseKind string

const (
	Mounted UseKind = "mounted"
	Swap    UseKind = "swap"
	Held    UseKind = "held" // by another block device: LVM, MD, device-mapper, bcache, loop
)

// Content is what was read on a device.
type Content struct {
	Signatures []Signature
	HeadZero   bool // all of the first MiB is zeros
	TailZero   bool // all of the last MiB is zeros
	Claim      *Tag // our own tag, nil without one
}

// Signature is a structure at the start or end of a known data format.
type Signature struct {
	Name   string // as a consent names it: "ext4"
	Where  string // the partition it was found on, empty for the device itself
	Offset int64  // in bytes from the start of the device or partition
}

// Identity is what tells this device from another of its size: serial number, else WWN, else nothing.
func (s State) Identity() string {
	if s.Device.Serial != "" {
		return s.Device.Serial
	}
	return s.Device.WWN
}

// SignatureNames lists what lies on the device, each name once, in order.
func (s State) SignatureNames() []string {
	var names []string
	for _, sig := range s.Content.Signatures {
		names = append(names, sig.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
