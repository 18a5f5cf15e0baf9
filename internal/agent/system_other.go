//go:build !unix

package agent

import (
	"net"
	"runtime"
)

// processTimes returns zeros: the counters of a process are not read on this system.
func processTimes() (user, system, switches float64) { return 0, 0, 0 }

func machineKernel() kernel { return kernel{name: runtime.GOOS, machine: runtime.GOARCH} }

// unread is not known here.
func unread(net.Conn) bool { return false }
