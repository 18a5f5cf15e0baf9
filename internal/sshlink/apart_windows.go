package sshlink

import (
	"os"
	"os/exec"
	"syscall"
)

// apart keeps what a console sends to its programs, such as Ctrl-C, from ssh: the controller asks hosts to stop, and their
// report must still get through.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminate ends a program. Windows has nothing milder.
func terminate(p *os.Process) { _ = p.Kill() }
