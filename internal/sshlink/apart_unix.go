//go:build unix

package sshlink

import (
	"os/exec"
	"syscall"
)

// apart keeps what a terminal sends to its foreground, such as the signal of Ctrl-C, from ssh: hosts are told to stop, and
// their report must get through.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
