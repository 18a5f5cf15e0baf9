//go:build !unix

package agentvm

import "os"

// OwnFolder makes a folder in parent for the VMs and disks of one lab; release removes it.
func OwnFolder(parent string) (dir string, release func(), err error) {
	dir, err = os.MkdirTemp(parent, "bragg-lab-vms-*")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}
