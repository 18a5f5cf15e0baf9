//go:build unix

package agent

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// processTimes returns seconds of CPU time and context switches of this process and its ended children.
func processTimes() (user, system, switches float64) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if unix.Getrusage(who, &usage) != nil {
			continue
		}
		user += seconds(usage.Utime.Nano())
		system += seconds(usage.Stime.Nano())
		switches += float64(usage.Nvcsw + usage.Nivcsw)
	}
	return user, system, switches
}

func machineKernel() kernel {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return kernel{}
	}
	return kernel{
		unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:]),
		unix.ByteSliceToString(u.Machine[:]),
	}
}

// unread reports whether the kernel holds unread bytes of a connection.
func unread(conn net.Conn) bool {
	s, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	err = raw.Control(func(fd uintptr) {
		n, _, _ = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err == nil && n > 0
}
