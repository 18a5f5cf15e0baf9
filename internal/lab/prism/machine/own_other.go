//go:build !unix

package machine

import "os"

// OwnFolder makes a folder in parent for the VMs and disks of one emulator; release removes it.
func OwnFolder(parent string) (dir string, release func(), err error) {
	dir, err = os.MkdirTemp(parent, "bragg-lab-prism-*")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}
