package vcsim

import "syscall"

// dieWithThis ends an agent with this program.
func dieWithThis() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
