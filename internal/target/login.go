package target

import (
	"context"
	"fmt"
)

// Logins describes how programs on the controller's machine can log in to VMs with ssh, as plans need it.
type Logins struct {
	// Hosts: VMs have no systems of their own, so that a login to a VM is one to its host.
	Hosts bool `json:"hosts,omitempty"`
	// Password: logins use a password.
	Password bool `json:"password,omitempty"`
	// Without are the templates whose VMs run no sshd.
	Without []string `json:"without,omitempty"`
	// Lacks are the settings that the target file lacks for logins, one phrase each.
	Lacks []string `json:"lacks,omitempty"`
}

// Login is one way to log in with ssh. Its secrets are in no command line and no journal.
type Login struct {
	Machine  string // the name of what is logged in to: VMs that are processes of one host share it
	Address  string // as ssh names it: a name, an alias of its configuration, or an IP address
	Port     int    // 0: ssh's default
	User     string // "": ssh's default
	Password string // "": by a key
	Key      string // private key in OpenSSH's format; "": the keys of Options and of ssh's configuration
	// HostKey is the public key that the machine must show, a line as in authorized_keys; "": not known.
	HostKey string
	Options []string // of ssh, each Name=value
	// Configured: ssh's configuration and known hosts of the user apply. Otherwise they are ignored.
	Configured bool
}

// GuestLogins is a target whose VMs, or the hosts in their place, run sshd.
type GuestLogins interface {
	// LoginVM returns how to log in to a VM that is on. The scenario calls the user so; the target may have another one.
	LoginVM(ctx context.Context, vm VM, user string) (Login, error)
}

// NodeLogins is a target that knows how to log in to its nodes.
type NodeLogins interface {
	LoginNode(ctx context.Context, nodeID string) (Login, error)
}

// guestCredential is the entry of credentials that logins use.
const guestCredential = "guest"

// GuestCredential reports whether the target file names a user with a password for logins.
func (c *Config) GuestCredential() bool {
	_, ok := c.Credentials[guestCredential]
	return ok
}

// LogIn puts the user and password of the target file into l, if there are any.
func (c *Config) LogIn(ctx context.Context, l *Login) error {
	given, ok := c.Credentials[guestCredential]
	if !ok {
		return nil
	}
	password, err := given.Secret.Read(ctx)
	if err != nil {
		return fmt.Errorf("credential %q: %w", guestCredential, err)
	}
	if l.Password, l.Key = password, ""; given.User != "" {
		l.User = given.User
	}
	return nil
}
