package pgbench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// room is the folder of one database's files on the VM, beside its data disk, or of the clients of an endpoint. It is removed with the VM.
//
//	<room>/sdb/data   the database
//	<room>/sdc/wal    its WAL, if it is on another disk
//	<room>/sdb/run    the server's socket
//	<room>/sdb/log    transaction logs and scripts of the load that runs
type room struct {
	path    string
	folder  *os.File // what programs reach it by
	account *program.Account
	unlock  func()
}

// account owns servers where the agent is root. The package of PostgreSQL brings it.
const account = "postgres"

// openRoom opens the room of a workload for it alone.
func openRoom(w *load.Workload, c *config) (*room, error) {
	owner, err := program.Unprivileged(account)
	if err != nil {
		return nil, err
	}
	path, err := roomPath(w, c)
	if err != nil {
		return nil, err
	}
	r := &room{path: path, account: owner}
	if err := r.make(""); err != nil {
		return nil, err
	}
	if r.unlock, err = lock(path); err != nil {
		return nil, fault("database-in-use", fmt.Sprintf("another load uses the database on disk %s: %v", c.disk, err),
			"let one end before the next starts, or give them different disks")
	}
	if r.folder, err = os.Open(path); err != nil {
		r.unlock()
		return nil, err
	}
	return r, nil
}

// roomPath is beside the file that is the disk. Disks that are block devices have no file system yet.
func roomPath(w *load.Workload, c *config) (string, error) {
	if c.disk == "" {
		here, err := os.Getwd()
		if err != nil || here == "/" {
			here = os.TempDir()
		}
		return filepath.Join(here, "pgbench-"+c.endpoint), nil
	}
	for _, d := range w.Devices {
		if d.Name != c.disk && d.Name != c.walDisk {
			continue
		}
		info, err := os.Stat(d.Path)
		if err != nil {
			return "", err
		}
		if !info.Mode().IsRegular() {
			return "", fault("disk-without-files", fmt.Sprintf("disk %s is a block device, and a server is set up beside disks that are files only", d.Name),
				"use the targets local or ssh, or an endpoint")
		}
	}
	for _, d := range w.Devices {
		if d.Name == c.disk {
			return filepath.Join(filepath.Dir(d.Path), "pgbench-"+filepath.Base(d.Name)), nil
		}
	}
	return "", fmt.Errorf("no disk %s", c.disk)
}

// make makes a folder of the room that belongs to the account.
func (r *room) make(name string) error {
	path := filepath.Join(r.path, name)
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return r.account.Own(path)
}

// of is the folder of a disk in the room.
func of(disk string) string {
	if disk == "" {
		return "client"
	}
	return filepath.Base(disk)
}

// clear removes what is below a folder of the room, and makes it again.
func (r *room) clear(names ...string) error {
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(r.path, name)); err != nil {
			return err
		}
		if err := r.make(name); err != nil {
			return err
		}
	}
	return nil
}

func (r *room) close() error {
	if r == nil {
		return nil
	}
	r.unlock()
	return r.folder.Close()
}
