package mlperf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// room is the folder of a workload's data: that of its disk, where it is removed with the VM, or in a folder that the machine defines,
// where it stays.
type room struct {
	path   string
	name   string        // of the disk
	disk   *program.Room // nil for a folder that the machine defines
	unlock []func()
}

func folderVariable(name string) string {
	return "BRAGG_FOLDER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

func folderFile(name string) string { return "/etc/bragg/folders/" + name }

func fault(code, message, hint string) error {
	return &diag.Error{Code: code, Message: message, Hint: hint, Exit: diag.ExitUnavailable}
}

// openRoom opens the room for this load alone, or that of a shared data set: loads on all VMs read it at once, and each prefill writes what is
// its own VM's part.
func openRoom(c *config, w *load.Workload) (*room, error) {
	if c.folder == "" {
		disk, err := program.OpenRoom(w, program.RoomName{Name: Name, FileSystem: &c.fileSystem}, c.disk)
		if err != nil {
			return nil, err
		}
		return &room{path: disk.Path(program.DiskFolder(c.disk)), name: c.disk, disk: disk}, nil
	}
	path, err := roomPath(c.folder, w, c.train.shared)
	if err != nil {
		return nil, err
	}
	r := &room{path: path}
	locked, lock := []string{path}, program.Lock
	switch {
	case c.train.shared && w.Prefill:
		locked = []string{part(path, w.Remote.Rank)}
	case c.train.shared:
		locked, lock = nil, program.LockShared
		for rank := range c.train.vms {
			locked = append(locked, part(path, rank))
		}
	}
	for _, folder := range locked {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, errors.Join(err, r.close())
		}
		unlock, err := lock(folder)
		if err != nil {
			return nil, errors.Join(fault("data-in-use", fmt.Sprintf("another load uses the data of %s: %v", c.place, err),
				"let one end before the next starts, or give them different folders"), r.close())
		}
		r.unlock = append(r.unlock, unlock)
	}
	return r, nil
}

// ready makes the folder, and in a prefill a new file system on a disk that is a block device.
func (r *room) ready() error {
	if r.disk == nil {
		return nil
	}
	return r.disk.Ready(r.name)
}

// mount describes the mount of the folder, empty if it is unknown.
func (r *room) mount() string {
	if r.disk != nil {
		if text := r.disk.MountOf(r.name); text != "" {
			return text
		}
	}
	return mountOf(r.path)
}

// storage describes the file system of a disk that is a block device.
func (r *room) storage() []string {
	if r == nil {
		return nil
	}
	return r.disk.Storage()
}

func (r *room) close() error {
	if r == nil {
		return nil
	}
	for _, unlock := range r.unlock {
		unlock()
	}
	return r.disk.Close()
}

// String names the place in plans and messages.
func (p place) String() string {
	if p.folder != "" {
		return "folder " + p.folder
	}
	return p.disk
}

func roomPath(folder string, w *load.Workload, shared bool) (string, error) {
	base, err := folderPath(folder)
	name := fmt.Sprintf("%s-%s-%04d", Name, filepath.Base(w.Group), w.Ordinal)
	if shared {
		name = fmt.Sprintf("%s-%s-shared", Name, filepath.Base(w.Group))
	}
	return filepath.Join(base, name), err
}

// folderPath is a folder that the owner of the machine chose: a scenario cannot write elsewhere.
func folderPath(name string) (string, error) {
	base, given := os.LookupEnv(folderVariable(name))
	if !given {
		text, err := os.ReadFile(folderFile(name))
		if err != nil {
			return "", fault("folder-unknown", fmt.Sprintf("folder %q is not defined on this machine: %v", name, err),
				fmt.Sprintf("set %s to a path, or write it into %s", folderVariable(name), folderFile(name)))
		}
		base = strings.TrimSpace(string(text))
	}
	info, err := os.Stat(base)
	switch {
	case err != nil:
		return "", fault("folder-missing", fmt.Sprintf("folder %q: %v", name, err), "mount it before the load")
	case !filepath.IsAbs(base) || !info.IsDir():
		return "", fault("folder-invalid", fmt.Sprintf("folder %q is not the absolute path of a folder", name), "")
	}
	return base, nil
}
