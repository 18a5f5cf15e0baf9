package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
)

// Room is a folder for the files of programs on a VM: beside its data disk, or in the agent's folder if they need no disk. Only one load
// uses it at a time. It is removed with the VM.
//
//	<room>/sdb/data   what belongs on one disk
//	<room>/sdc/wal    and on another
type Room struct {
	path    string
	folder  *os.File // what programs reach it by
	account *Account
	unlock  func()
}

// RoomName is the name of a room and who owns it.
type RoomName struct {
	Name    string // of the generator: rooms of different names do not meet
	Account string // user that owns the files where this process is root; "": root
}

// OpenRoom opens a room on the first of some disks of the workload for it alone.
func OpenRoom(w *load.Workload, name RoomName, disks ...string) (*Room, error) {
	owner, err := Unprivileged(name.Account)
	if err != nil {
		return nil, err
	}
	path, err := roomPath(w, name.Name, disks)
	if err != nil {
		return nil, err
	}
	r := &Room{path: path, account: owner}
	if err := r.Make(""); err != nil {
		return nil, err
	}
	if r.unlock, err = Lock(path); err != nil {
		return nil, &diag.Error{Code: "disk-in-use", Exit: diag.ExitUnavailable, Err: err,
			Message: fmt.Sprintf("another load uses the files of %s on disk %s", name.Name, disks), Hint: "let one end before the next starts, or give them different disks"}
	}
	if r.folder, err = os.Open(path); err != nil {
		r.unlock()
		return nil, err
	}
	return r, nil
}

// roomPath is beside the file that is the disk. Disks that are block devices have no file system yet.
func roomPath(w *load.Workload, name string, disks []string) (path string, err error) {
	if len(disks) == 0 {
		here, err := os.Getwd()
		if err != nil || here == "/" {
			here = os.TempDir()
		}
		return filepath.Join(here, name), nil
	}
	for _, disk := range disks {
		d, known := w.Device(disk)
		if !known {
			return "", fmt.Errorf("no disk %s", disk)
		}
		info, err := os.Stat(d.Path)
		if err != nil {
			return "", err
		}
		if !info.Mode().IsRegular() {
			return "", &diag.Error{Code: "disk-without-files", Exit: diag.ExitUnavailable,
				Message: fmt.Sprintf("disk %s is a block device, and %s keeps its files beside disks that are files only", disk, name),
				Hint:    "use the targets local or ssh, or an endpoint"}
		}
		if path == "" {
			path = filepath.Join(filepath.Dir(d.Path), name+"-"+DiskFolder(disk))
		}
	}
	return path, nil
}

// DiskFolder is the folder of a disk in its room.
func DiskFolder(disk string) string {
	if disk == "" {
		return "client"
	}
	return filepath.Base(disk)
}

// Path is the path to a file of the room for this process.
func (r *Room) Path(names ...string) string {
	return filepath.Join(append([]string{r.path}, names...)...)
}

// Make makes a folder of the room that belongs to the account.
func (r *Room) Make(name string) error {
	path := r.Path(name)
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return r.account.Own(path)
}

// Clear removes what is below folders of the room, and makes them again.
func (r *Room) Clear(names ...string) error {
	for _, name := range names {
		if err := os.RemoveAll(r.Path(name)); err != nil {
			return err
		}
		if err := r.Make(name); err != nil {
			return err
		}
	}
	return nil
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

// Reach is a short path to the folder of a disk for this process: those of sockets are limited to 107 bytes.
func (r *Room) Reach(disk string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", r.folder.Fd(), DiskFolder(disk))
}

// Close lets other loads use the room.
func (r *Room) Close() error {
	if r == nil {
		return nil
	}
	r.unlock()
	return r.folder.Close()
}
