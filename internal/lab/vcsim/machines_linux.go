package vcsim

import (
	"os"

	"github.com/braggdev/bragg/internal/lab/agentvm"
)

// newMachines are VMs with disks; nil without the rights for them.
func newMachines(program, dir string) machines {
	if os.Geteuid() != 0 {
		return nil
	}
	return &agentvm.Machines{Agent: program, Dir: dir}
}
