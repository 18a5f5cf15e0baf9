package program

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// Account is a user of this machine.
type Account struct {
	Name     string
	UID, GID uint32
}

// Unprivileged returns a user for programs that refuse to run as root or should not. It is nil without a name, and where this process is
// not root and runs everything as its own user.
func Unprivileged(name string) (*Account, error) {
	if name == "" || os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if uidErr != nil || gidErr != nil || uid == 0 {
		return nil, fmt.Errorf("user %q has id %s", name, u.Uid)
	}
	return &Account{Name: name, UID: uint32(uid), GID: uint32(gid)}, nil
}

// Own gives a file or folder to the account. Without an account it is this process's own already.
func (a *Account) Own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, int(a.UID), int(a.GID))
}
