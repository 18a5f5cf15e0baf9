//go:build unix

package sshlink

import (
	"os"
	"os/exec"
	"syscall"
)

// apart keeps what a terminal sends to its foreground, such as the signal of Ctrl-C, from ssh: the controller asks hosts to
// stop, and their report must still get through.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks a program that was set apart, and the jump hosts' ssh that it may have started, to end.
func terminate(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }
