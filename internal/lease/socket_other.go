//go:build !linux

package lease

import (
	"errors"
	"net"
	"os/exec"
)

// Machines with other systems cannot be targets.

func credentials(net.Conn) (process, user int, err error) { return 0, 0, errors.ErrUnsupported }

func mayChange(int) bool { return false }

func shutdown(uintptr) {}

func apart(*exec.Cmd) {}
