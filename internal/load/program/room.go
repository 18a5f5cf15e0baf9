package program

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
)

// Room is a folder for the files of programs on a VM: beside its data disk if that is a file, else in the agent's folder, where a disk that is
// a block device is mounted for programs of the room alone. Only one load uses it at a time. It is removed with the VM.
//
//	<room>/sdb/data   what belongs on one disk
//	<room>/sdc/wal    and on another
//
// Who reaches its files by which path:
//
//	this process              Path, and Reach for sockets, whose paths are short
//	a program of its account  Confine ▶ RoomFolder: by a descriptor, for programs that leave paths as they are
//	                          Mounted ▶ MountedFolder: for those that resolve them
//	a program of root         Joined ▶ JoinedPath: for those whose children have no descriptors
//
// A prefill makes new file systems on block devices with Clear, and a load mounts them in OpenRoom. Close unmounts them, and so does the kernel
// when this process ends in any other way; they stay on the devices.
type Room struct {
	path    string
	folder  *os.File // what programs reach it by
	account *Account
	unlock  func()
	volumes *volumes // nil unless its disks are block devices
}

// RoomName is the name of a room and who owns it.
type RoomName struct {
	Name    string // of the generator: rooms of different names do not meet
	Account string // user that owns the files where this process is root; "": root
	// FileSystem is made on disks that are block devices; nil for a room without disks.
	FileSystem *FileSystem
	Said       io.Writer // what was done to disks, may be nil
}

// OpenRoom opens a room on the first of some disks of the workload for it alone.
func OpenRoom(w *load.Workload, name RoomName, disks ...string) (*Room, error) {
	owner, err := Unprivileged(name.Account)
	if err != nil {
		return nil, err
	}
	r := &Room{account: owner}
	var devices []load.Device
	if r.path, devices, err = roomPath(w, name, disks); err != nil {
		return nil, err
	}
	if err := r.Make(""); err != nil {
		return nil, err
	}
	if r.unlock, err = Lock(r.path); err != nil {
		return nil, &diag.Error{Code: "disk-in-use", Exit: diag.ExitUnavailable, Err: err,
			Message: fmt.Sprintf("another load uses the files of %s on disk %s", name.Name, disks), Hint: "let one end before the next starts, or give them different disks"}
	}
	if len(devices) == 0 {
		r.folder, err = os.Open(r.path)
	} else if r.volumes, err = openVolumes(w, r.path, name, devices); err == nil {
		r.folder = r.volumes.space.folder
	}
	if err != nil {
		r.unlock()
		return nil, err
	}
	return r, nil
}

// roomPath is beside the file that is the first disk, or in the agent's folder without a disk and for disks that are block devices, which
// it returns.
func roomPath(w *load.Workload, name RoomName, disks []string) (path string, devices []load.Device, err error) {
	beside := ""
	for _, disk := range disks {
		d, known := w.Device(disk)
		if !known {
			return "", nil, fmt.Errorf("no disk %s", disk)
		}
		info, err := os.Stat(d.Path)
		switch {
		case err != nil:
			return "", nil, err
		case info.Mode().IsRegular():
			beside = cmp.Or(beside, filepath.Dir(d.Path))
		case name.FileSystem == nil || info.Mode().Type() != fs.ModeDevice:
			return "", nil, &diag.Error{Code: "disk-without-files", Exit: diag.ExitUnavailable,
				Message: fmt.Sprintf("disk %s is neither a file nor a block device with a file system for %s", disk, name.Name)}
		case !slices.ContainsFunc(devices, func(d load.Device) bool { return d.Name == disk }):
			devices = append(devices, d)
		}
	}
	if beside != "" && len(devices) > 0 {
		return "", nil, &diag.Error{Code: "mixed-disks", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("of the disks %s some are files and some block devices",
			strings.Join(disks, ", ")), Hint: "use disks of one kind for one load"}
	}
	folder := name.Name
	if len(disks) > 0 {
		folder += "-" + DiskFolder(disks[0])
	}
	if beside != "" {
		return filepath.Join(beside, folder), nil, nil
	}
	here, err := os.Getwd()
	if err != nil || here == "/" {
		here = os.TempDir()
	}
	return filepath.Join(here, folder), devices, nil
}

// DiskFolder is the folder of a disk in its room.
func DiskFolder(disk string) string {
	if disk == "" {
		return "client"
	}
	return filepath.Base(disk)
}

// Path is the path to a file of the room for this process. On a disk that is a block device it is not valid for other processes.
func (r *Room) Path(names ...string) string {
	path := filepath.Join(append([]string{r.path}, names...)...)
	if r.volumes == nil || path == r.path {
		return path
	}
	below, _ := filepath.Rel(r.path, path)
	first, _, _ := strings.Cut(below, string(filepath.Separator))
	if r.volumes.of(filepath.Join(r.path, first)) == nil {
		return path
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", r.folder.Fd(), below)
}

// Make makes a folder of the room that belongs to the account.
func (r *Room) Make(name string) error {
	path := r.Path(name)
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return r.account.Own(path)
}

// Clear removes what is below folders of the room, and makes them again. A disk that is a block device gets a new file system.
func (r *Room) Clear(names ...string) error {
	done := map[string]bool{}
	for _, name := range names {
		if done[name] {
			continue
		}
		done[name] = true
		var err error
		if v := r.volumes.of(filepath.Join(r.path, name)); v != nil {
			err = r.volumes.empty(v)
		} else {
			err = os.RemoveAll(r.Path(name))
		}
		if err != nil {
			return err
		}
		if err := r.Make(name); err != nil {
			return err
		}
	}
	return nil
}

// Ready makes the folder of a disk. In a prefill a disk that is a block device gets a new file system; in a load it has that one.
func (r *Room) Ready(disk string) error {
	name := DiskFolder(disk)
	if v := r.volumes.of(filepath.Join(r.path, name)); v != nil && v.mkfs != "" {
		return r.Clear(name)
	}
	return r.Make(name)
}

// WriteFile makes a file of the room that belongs to the account.
func (r *Room) WriteFile(name, text string) error {
	if err := os.WriteFile(r.Path(name), []byte(text), 0o600); err != nil {
		return err
	}
	return r.account.Own(r.Path(name))
}

// Unnamed returns a file of the room that belongs to the account and has no name: nothing is left of it, whatever ends this process.
func (r *Room) Unnamed(text string) (*os.File, error) {
	f, err := os.CreateTemp(r.path, "unnamed-*") // only its user may read it
	if err != nil {
		return nil, err
	}
	if err = r.account.Own(f.Name()); err == nil {
		err = os.Remove(f.Name())
	}
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Confine lets a command run as the room's account, with the room as its file 0.
func (r *Room) Confine(c Command) Command {
	c.Account, c.Files = r.account, []*os.File{r.folder}
	return c
}

// RoomFolder is the folder of a disk for a confined command.
func RoomFolder(disk string) string { return Inherited(0) + "/" + DiskFolder(disk) }

// Mounted lets a command of the room's account, if it has one, see the room as MountPoint.
func (r *Room) Mounted(c Command) Command {
	if r.account != nil {
		c.Mount = r.path
		if r.volumes != nil {
			c.Mounts = r.volumes.space.itself
		}
	}
	return c
}

// MountedFolder is the folder of a disk for such a command.
func (r *Room) MountedFolder(disk string) string {
	if r.account == nil {
		return RoomFolder(disk)
	}
	return MountPoint + "/" + DiskFolder(disk)
}

// Joined lets a command of root see disks that are block devices at their JoinedPath.
func (r *Room) Joined(c Command) Command {
	if r.volumes != nil {
		c.Alone, c.Mounts = true, r.volumes.space.itself
	}
	return c
}

// JoinedPath is the path to a file of the room for such a command. It has no links to descriptors, which its children would not inherit.
func (r *Room) JoinedPath(names ...string) string {
	return filepath.Join(append([]string{r.path}, names...)...)
}

// Reach is a short path to the folder of a disk for this process: those of sockets are limited to 107 bytes.
func (r *Room) Reach(disk string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", r.folder.Fd(), DiskFolder(disk))
}

// Close lets other loads use the room.
func (r *Room) Close() error {
	if r == nil {
		return nil
	}
	defer r.unlock()
	if r.volumes != nil {
		return r.volumes.close()
	}
	return r.folder.Close()
}

// MountOf is what the kernel says of the mount of a disk that is a block device, "" for others.
func (r *Room) MountOf(disk string) string {
	if v := r.volumes.of(filepath.Join(r.path, DiskFolder(disk))); v != nil {
		return v.mounted
	}
	return ""
}

// Storage describes the file systems of disks that are block devices, one text for each.
func (r *Room) Storage() (list []string) {
	if r == nil || r.volumes == nil {
		return nil
	}
	for _, v := range r.volumes.list {
		list = append(list, v.device.Name+": "+v.files.String())
	}
	return list
}
