package sshlink

import (
	"os"
	"os/exec"
	"syscall"
)

// apart shields ssh from events of the console, such as Ctrl-C: the controller stops the hosts itself, and their reports
// must still get through.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminate ends a program. Windows has no orderly way.
func terminate(p *os.Process) { _ = p.Kill() }
