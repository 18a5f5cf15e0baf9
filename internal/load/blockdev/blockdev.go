// Package blockdev identifies a path before anything is written to it, and refuses paths that hold data or are in use.
//
//	Examine(path)              → State: kind, identity, who uses it, what lies on it
//	Check(state, consent)      → nil, or an error that names everything found
//	Open(path, consent, flags) → both, then the same again on the opened descriptor
//
// It reads sysfs, procfs and the first and last parts of the device. Only Claim writes. It does not partition or repair
// devices. A fact that cannot be read counts as a reason to refuse.
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

// State is the state of a path at one time. It is a plain value without open files.
type State struct {
	Path      string // as passed to Examine
	Node      string // after following symbolic links
	Kind      Kind
	Number    Number // of a device
	File      FileID // of a regular file
	SizeBytes int64
	Device    Device // of a block device
	Uses      []Use
	Busy      bool // an exclusive open was refused: the device is in use, perhaps in another mount namespace
	Content   Content
	Faults    []string // facts that could not be read
}

// FileID identifies a file.
type FileID struct{ Device, Inode uint64 }

// Device holds what sysfs and udev report about a block device.
type Device struct {
	Name               string // of the kernel: "sda1"
	Model, Serial, WWN string // of a partition: of its disk
	Links              []string
	LogicalBlockBytes  int64
	PhysicalBlockBytes int64
	ReadOnly           bool
	Rotational         bool
	Sequence           uint64 // increases with every attached disk; 0 before Linux 5.15
	Partition          bool
	Disk               string // of a partition: its disk; else its own name
	Partitions         []Partition
	Backing            string // the file or device below a loop device
}

// Partition is a partition that the kernel has on a disk.
type Partition struct {
	Name       string
	StartBytes int64
	SizeBytes  int64
}

// Use is one way in which a device is in use.
type Use struct {
	Kind  UseKind
	What  string   // the mount point, the swap's name, the name of the holder
	Chain []string // names from the device in use to the examined one; a single name if they are the same
}

// UseKind is how a device is in use.
type UseKind string

const (
	Mounted UseKind = "mounted"
	Swap    UseKind = "swap"
	Held    UseKind = "held" // by another block device: LVM, MD, device-mapper, bcache, loop
)

// Content describes the data found on a device.
type Content struct {
	Signatures []Signature
	HeadZero   bool // all of the first MiB is zeros
	TailZero   bool // all of the last MiB is zeros
	Claim      *Tag // a claim tag of Bragg, nil without one
}

// Signature is a structure at the start or end of a known data format.
type Signature struct {
	Name   string // as a consent spells it: "ext4"
	Where  string // the partition that has it, empty for the device itself
	Offset int64  // in bytes from the start of the device or partition
}

// Identity identifies the device: by serial number, else by WWN, else it is empty.
func (s State) Identity() string {
	if s.Device.Serial != "" {
		return s.Device.Serial
	}
	return s.Device.WWN
}

// SignatureNames lists the signatures on the device, each name once, in order.
func (s State) SignatureNames() []string {
	var names []string
	for _, sig := range s.Content.Signatures {
		names = append(names, sig.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
