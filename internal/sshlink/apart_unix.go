//go:build unix

package sshlink

import (
	"os"
	"os/exec"
	"syscall"
)

// apart shields ssh from signals to the terminal's foreground, such as Ctrl-C: the controller stops the hosts itself, and
// their reports must still get through.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate signals a program that was set apart, and the jump hosts' ssh that it may have started, to end.
func terminate(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }
