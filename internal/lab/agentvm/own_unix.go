//go:build unix

package agentvm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/durable"
)

const (
	// ownPrefix begins the names of folders of labs, newPrefix of those that are not marked yet.
	ownPrefix = "bragg-lab-vms-"
	newPrefix = ".bragg-lab-vms-"
	// ownMark is a file in each of them.
	ownMark = "bragg-lab-vms"
)

// OwnFolder makes a folder in parent for the VMs and disks of one lab; release removes it. Folders of labs that were killed are
// removed first: the kernel released their locks.
func OwnFolder(parent string) (dir string, release func(), err error) {
	sweep(parent)
	fresh, err := os.MkdirTemp(parent, newPrefix+"*")
	if err != nil {
		return "", nil, err
	}
	// It is locked and marked before it has the name by which others find it.
	unlock, err := durable.LockDir(fresh, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = os.WriteFile(filepath.Join(fresh, ownMark), nil, 0o600)
	}
	dir = filepath.Join(parent, ownPrefix+strings.TrimPrefix(filepath.Base(fresh), newPrefix))
	if err == nil {
		err = os.Rename(fresh, dir)
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(fresh))
	}
	return dir, func() {
		_ = os.RemoveAll(dir)
		unlock()
	}, nil
}

// sweep removes the folders of this user's labs that no longer run. What cannot be removed stays for the next one.
func sweep(parent string) {
	found, _ := filepath.Glob(filepath.Join(parent, ownPrefix+"*"))
	for _, dir := range found {
		var folder, mark unix.Stat_t
		if unix.Lstat(dir, &folder) != nil || folder.Mode&unix.S_IFMT != unix.S_IFDIR || int(folder.Uid) != os.Geteuid() ||
			unix.Lstat(filepath.Join(dir, ownMark), &mark) != nil {
			continue
		}
		unlock, err := durable.LockDir(dir, unix.LOCK_EX|unix.LOCK_NB)
		if err != nil {
			continue // its lab runs
		}
		_ = os.RemoveAll(dir)
		unlock()
	}
}
