//go:build unix

package target

import (
	"os/exec"
	"syscall"
)

// Apart keeps signals to the terminal or the process group from a program that the cleanup of a run may need. It finds no terminal to
// ask for a password.
func Apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
