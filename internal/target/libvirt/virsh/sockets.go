package virsh

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
)

var socketFolderText = regexp.MustCompile("^" + socketFolderPrefix + `[0-9]+$`)

// swept are the folders that were swept. Once is enough: checking the socket of a tunnel in use connects to the libvirt of its host.
var swept sync.Map

// sweepSockets removes folders of tunnels whose controller was killed: those of this user that hold dead sockets and nothing else. A
// folder without sockets may belong to a tunnel that is being made.
func sweepSockets(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		if !socketFolderText.MatchString(e.Name()) || !e.IsDir() {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		info, err := os.Lstat(dir)
		if err != nil || info.Mode().Perm() != 0o700 {
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
			continue
		}
		sockets, err := os.ReadDir(dir)
		dead := err == nil && len(sockets) > 0
		for _, s := range sockets {
			dead = dead && s.Type() == os.ModeSocket && isDead(filepath.Join(dir, s.Name()))
		}
		if !dead {
			continue
		}
		for _, s := range sockets {
			_ = os.Remove(filepath.Join(dir, s.Name()))
		}
		_ = os.Remove(dir) // another controller may have been quicker
	}
}

// isDead reports whether no program listens on a socket.
func isDead(path string) bool {
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
