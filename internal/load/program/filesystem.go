package program

import (
	"cmp"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// FileSystem is what disks that are block devices get before programs keep files there.
type FileSystem struct {
	Type    string // one of FileSystemTypes
	Options string // of its mount, with commas between them; "" has none
}

// FileSystemNames are the options that say what disks get that are block devices.
var FileSystemNames = []string{"file_system", "mount_options"}

// ReadFileSystem reads the options of FileSystemNames.
func ReadFileSystem(o *load.Options) FileSystem {
	s := FileSystem{Type: cmp.Or(o.Values["file_system"], FileSystemDefault), Options: MountOptionsDefault}
	if !slices.Contains(FileSystemTypes, s.Type) {
		o.Fault("file_system", "file_system: %q is not %s", s.Type, strings.Join(FileSystemTypes, " or "))
		return s
	}
	if text, given := o.Values["mount_options"]; given {
		s.Options = strings.ReplaceAll(text, " ", "")
	}
	if wrong := s.Check(); wrong != "" {
		o.Fault("mount_options", "mount_options: %s", wrong)
	}
	return s
}

// ReadDisk reads the option disk of a load that keeps files: the first data disk unless it names another.
func ReadDisk(o *load.Options, w *load.Workload) string {
	if len(w.Devices) == 0 {
		o.Fault("disk", "the VM group has no data disk for the files")
		return ""
	}
	return ChooseDisk(o, w, "disk", w.Devices[0].Name)
}

// ChooseDisk reads an option with one of the disks of the workload, or returns the fallback if it is not given.
func ChooseDisk(o *load.Options, w *load.Workload, option, fallback string) string {
	disk, given := o.Values[option]
	if !given || disk == "" {
		return fallback
	}
	var names []string
	for _, d := range w.Devices {
		names = append(names, d.Name)
	}
	if !slices.Contains(names, disk) {
		o.Fault(option, "%s: disk %q is not one of the VM group, which has %s", option, disk, strings.Join(names, ", "))
	}
	return disk
}

// rehearsalBlockBytesXFS lets a rehearsal shrink a disk to 512 MiB: mkfs.xfs refuses less than 300 MB.
const rehearsalBlockBytesXFS = 8 * unit.MiB

// Plan notes what disks get that are block devices, which a plan does not know.
func (s FileSystem) Plan(into *load.Plan) {
	need := s.Need()
	text := fmt.Sprintf("disks that are block devices (VMs of a hypervisor): in %s, made with %s", s, need.Program)
	if p := into.Program; p != nil {
		p.Data = append(p.Data, text)
		if s.Type != FileSystemDefault { // which every distribution has
			p.Needs = append(p.Needs, need)
		}
	} else {
		into.Notes = append(into.Notes, text)
	}
	if s.Type == "xfs" {
		into.BlockBytesMax = max(into.BlockBytesMax, rehearsalBlockBytesXFS)
	}
}

// CheckFits refuses files that are larger than their disk. takes ends the sentence "disk /dev/sdb has 1GiB and …": "the files take".
func CheckFits(w *load.Workload, disk string, bytes int64, takes, hint string) error {
	d, known := w.Device(disk)
	if !known || d.SizeBytes == 0 || bytes <= d.SizeBytes {
		return nil
	}
	return &diag.Error{Code: "device-too-small", Exit: diag.ExitData, Hint: hint,
		Message: fmt.Sprintf("disk %s has %s and %s %s", d.Name, unit.FormatBytes(d.SizeBytes), takes, unit.FormatBytes(bytes))}
}

// Defaults of a FileSystem. Reads of a file must not write its time of access.
const (
	FileSystemDefault   = "ext4"
	MountOptionsDefault = "noatime"
)

// FileSystemTypes are the file systems that a room can make.
var FileSystemTypes = []string{"ext4", "xfs"}

// mountOptions are those that a scenario may give, by file system and by name. None of them names a file or another device. A value that ends
// in = is followed by one of letters and digits.
var mountOptions = map[string][]string{
	"": {"noatime", "relatime", "nodiratime", "lazytime", "nolazytime", "discard", "nodiscard"},
	"ext4": {"data=", "commit=", "barrier=", "delalloc", "nodelalloc", "auto_da_alloc", "noauto_da_alloc", "dioread_lock", "dioread_nolock", "stripe=",
		"journal_async_commit", "max_batch_time=", "min_batch_time=", "inode_readahead_blks="},
	"xfs": {"allocsize=", "logbufs=", "logbsize=", "largeio", "nolargeio", "inode32", "inode64", "swalloc", "sunit=", "swidth="},
}

// Check returns what is wrong with the options of a mount, "" if nothing is.
func (s FileSystem) Check() string {
	known := slices.Concat(mountOptions[""], mountOptions[s.Type])
	for _, option := range s.mountOptions() {
		name, value, valued := strings.Cut(option, "=")
		if valued {
			name += "="
		}
		if !slices.Contains(known, name) {
			return fmt.Sprintf("%q is not an option for %s here: %s", option, s.Type, strings.Join(known, ", "))
		}
		if valued && strings.Trim(value, "abcdefghijklmnopqrstuvwxyz0123456789") != "" || valued && value == "" {
			return fmt.Sprintf("%q has no value of letters and digits", option)
		}
	}
	return ""
}

func (s FileSystem) mountOptions() []string {
	if s.Options == "" {
		return nil
	}
	return strings.Split(s.Options, ",")
}

// String is for people: "ext4 (noatime)".
func (s FileSystem) String() string {
	if s.Options == "" {
		return s.Type
	}
	return s.Type + " (" + s.Options + ")"
}

// Need is the program that makes it.
func (s FileSystem) Need() load.Need {
	name := map[string]string{"xfs": "xfsprogs"}[s.Type]
	if name == "" {
		name = "e2fsprogs"
	}
	return load.Need{Program: "mkfs." + s.Type, Packages: []load.Package{{Family: load.Debian, Name: name}, {Family: load.RedHat, Name: name}, {Family: load.SUSE, Name: name}}}
}

// command makes the file system on the first inherited file. What it would complete later, in the background of a load, is complete at once.
func (s FileSystem) command(path, id string) Command {
	args := []string{"-q", "-F", "-U", id, "-E", "lazy_itable_init=0,lazy_journal_init=0", Inherited(0)}
	if s.Type == "xfs" {
		args = []string{"-q", "-f", "-m", "uuid=" + id, Inherited(0)}
	}
	return Command{Path: path, Args: args, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}}
}

// findMkfs looks in the folders of administrators' programs too, which are not in every PATH.
func (s FileSystem) findMkfs() (string, error) {
	n := s.Need()
	for _, name := range []string{n.Program, "/usr/sbin/" + n.Program, "/sbin/" + n.Program} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", &diag.Error{Code: "program-missing", Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("find programs on this machine: no %s, which makes the file system of a disk", n.Program), Hint: hint([]load.Need{n})}
}
