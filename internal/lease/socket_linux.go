package lease

import (
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// credentials returns the process and user at the other end of a connection, as the kernel knows them: the one that listens,
// even if it is stopped, or the one that connected.
func credentials(conn net.Conn) (process, user int, err error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var c *unix.Ucred
	if outer := raw.Control(func(fd uintptr) { c, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); outer != nil {
		err = outer
	}
	if err != nil {
		return 0, 0, err
	}
	return int(c.Pid), int(c.Uid), nil
}

// mayChange reports whether a user may end what this process keeps: it could kill it as well.
func mayChange(user int) bool { return user == 0 || user == os.Getuid() }

func shutdown(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) }

func apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
