//go:build !linux

package machine

import (
	"os"
	"os/exec"

	"github.com/braggdev/bragg/internal/lab/prism/state"
)

// command starts an agent without disks.
func command(agent []string, config, _ string, _ []state.MachineDisk) *exec.Cmd {
	program := append(append([]string(nil), agent...), config)
	return exec.Command(program[0], program[1:]...)
}

func pressButton(p *os.Process) { _ = p.Signal(os.Interrupt) }

func cutPower(p *os.Process) { _ = p.Kill() }
