package image

import (
	"os/exec"
	"syscall"
)

// dieWithThis lets the kernel kill a command when this process ends for any reason.
func dieWithThis(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
