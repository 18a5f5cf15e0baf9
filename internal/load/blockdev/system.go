package blockdev

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// system has the places where the kernel and udev describe devices: folders, so that tests can use their own.
type system struct {
	sys, proc, dev, udev string

	// Queries that need a running kernel; nil in tests with their own folders.
	numberOf func(path string) (Number, bool) // of a device node at any path
	loopFile func(name string) (FileID, bool) // of a loop device, even if its path has changed
	fileOf   func(path string) (FileID, bool)
}

const sectorBytes = 512 // unit of sysfs, for all block sizes

// attribute reads one value of a device, empty if it does not exist.
func (s system) attribute(name string, path ...string) string {
	text, err := os.ReadFile(filepath.Join(append([]string{s.folder(name)}, path...)...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.Trim(string(text), "\x00"))
}

func (s system) number(name string, path ...string) int64 {
	n, err := strconv.ParseInt(s.attribute(name, path...), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (s system) folder(name string) string {
	// A slash in a kernel name ("cciss/c0d0") is an exclamation mark in sysfs.
	return filepath.Join(s.sys, "class", "block", strings.ReplaceAll(name, "/", "!"))
}

func (s system) exists(name string) bool {
	_, err := os.Stat(filepath.Join(s.folder(name), "dev"))
	return name != "" && err == nil
}

// names lists all block devices of the kernel.
func (s system) names() []string {
	return folderNames(filepath.Join(s.sys, "class", "block"))
}

func folderNames(path string) []string {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// nameOfNumber finds the kernel's name for a device number, empty if no driver has it.
func (s system) nameOfNumber(n Number) string {
	real, err := filepath.EvalSymlinks(filepath.Join(s.sys, "dev", "block", n.String()))
	if err != nil {
		return ""
	}
	return filepath.Base(real)
}

// nameOfPath finds the kernel's name of the device at the path of a mount or swap.
func (s system) nameOfPath(path string) string {
	if s.numberOf != nil {
		if n, ok := s.numberOf(path); ok {
			return s.nameOfNumber(n)
		}
	}
	rest, below := strings.CutPrefix(path, "/dev/")
	if !below {
		return ""
	}
	if real, err := filepath.EvalSymlinks(filepath.Join(s.dev, rest)); err == nil {
		rest = filepath.Base(real)
	}
	if !s.exists(rest) {
		return ""
	}
	return rest
}

// diskOf is the disk of a partition, or the device's own name.
func (s system) diskOf(name string) string {
	if s.attribute(name, "partition") == "" {
		return name
	}
	real, err := filepath.EvalSymlinks(s.folder(name))
	if err != nil {
		return name
	}
	return filepath.Base(filepath.Dir(real))
}

func (s system) partitions(name string) []Partition {
	var found []Partition
	for _, child := range folderNames(s.folder(name)) {
		if s.attribute(name, child, "partition") == "" {
			continue
		}
		found = append(found, Partition{
			Name:       child,
			StartBytes: s.number(name, child, "start") * sectorBytes,
			SizeBytes:  s.number(name, child, "size") * sectorBytes,
		})
	}
	return found
}

// device reads what sysfs and udev report about a device.
func (s system) device(name string) Device {
	disk := s.diskOf(name)
	d := Device{
		Name: name, Disk: disk, Partition: disk != name,
		Model:              first(s.attribute(disk, "device", "model"), s.attribute(disk, "device", "name")),
		LogicalBlockBytes:  s.number(disk, "queue", "logical_block_size"),
		PhysicalBlockBytes: s.number(disk, "queue", "physical_block_size"),
		ReadOnly:           s.attribute(name, "ro") == "1" || s.attribute(disk, "ro") == "1",
		Rotational:         s.attribute(disk, "queue", "rotational") == "1",
		Sequence:           uint64(s.number(disk, "diskseq")),
		Partitions:         s.partitions(name),
		Backing:            s.attribute(disk, "loop", "backing_file"),
		Links:              s.links(name),
	}
	told := s.udevData(disk)
	d.Serial = first(s.attribute(disk, "serial"), s.attribute(disk, "device", "serial"), s.serialPage(disk),
		told["ID_SERIAL_SHORT"])
	d.WWN = first(s.attribute(disk, "wwid"), s.attribute(disk, "device", "wwid"), s.attribute(disk, "dm", "uuid"),
		s.attribute(disk, "md", "uuid"), told["ID_WWN_WITH_EXTENSION"], told["ID_WWN"])
	return d
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// serialPage reads the serial number page of a SCSI disk (SPC, "Unit Serial Number"): four bytes of header, the last two of
// them the length.
func (s system) serialPage(name string) string {
	page, err := os.ReadFile(filepath.Join(s.folder(name), "device", "vpd_pg80"))
	if err != nil || len(page) < 4 {
		return ""
	}
	length := int(page[2])<<8 | int(page[3])
	return strings.TrimSpace(strings.Trim(string(page[4:min(4+length, len(page))]), "\x00"))
}

// udevData reads udev's record of a device, which has serials that sysfs lacks (USB bridges, old disks).
func (s system) udevData(name string) map[string]string {
	values := map[string]string{}
	text, err := os.ReadFile(filepath.Join(s.udev, "data", "b"+s.attribute(name, "dev")))
	if err != nil {
		return values
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "E:"), "="); ok {
			values[key] = value
		}
	}
	return values
}

// links lists the persistent names of a device: those below /dev/disk/by-id.
func (s system) links(name string) []string {
	folder := filepath.Join(s.dev, "disk", "by-id")
	var found []string
	for _, link := range folderNames(folder) {
		target, err := os.Readlink(filepath.Join(folder, link))
		if err == nil && filepath.Base(target) == name {
			found = append(found, "/dev/disk/by-id/"+link)
		}
	}
	slices.Sort(found)
	return found
}

// describe describes a block device, except its content and whether it is busy.
func (s system) describe(n Number) State {
	state := State{Kind: Block, Number: n}
	name := s.nameOfNumber(n)
	if name == "" {
		state.Faults = append(state.Faults, fmt.Sprintf("the kernel has no block device with the number %s", n))
		return state
	}
	state.Device = s.device(name)
	state.SizeBytes = s.number(name, "size") * sectorBytes
	stack, err := s.stack()
	if err != nil {
		state.Faults = append(state.Faults, "its users are unknown: "+err.Error())
		return state
	}
	state.Uses = stack.uses(name)
	return state
}
