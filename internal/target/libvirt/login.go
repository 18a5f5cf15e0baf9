package libvirt

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/braggdev/bragg/internal/target"
)

// rootUser can log in to every guest of a cloud image with the key of this program.
const rootUser = "root"

// keyring derives the keys of ssh that this program gives to guests: one by which it logs in, and one of the sshd of each guest. They
// are in the memory of this program and in the seeds alone. The zero value is ready for use.
type keyring struct{ secret [sha256.Size]byte }

func newKeyring() (k keyring) {
	_, _ = rand.Read(k.secret[:]) // never fails
	return k
}

// key returns the private key of a purpose in OpenSSH's format, and its public key as one line.
func (k keyring) key(purpose string) (private, public string, err error) {
	mac := hmac.New(sha256.New, k.secret[:])
	mac.Write([]byte(purpose))
	key := ed25519.NewKeyFromSeed(mac.Sum(nil))
	block, err := ssh.MarshalPrivateKey(key, "bragg")
	if err != nil {
		return "", "", err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return "", "", err
	}
	return string(pem.EncodeToMemory(block)), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
}

func (k keyring) login() (private, public string, err error) { return k.key("login") }

func (k keyring) host(vm string) (private, public string, err error) { return k.key("host " + vm) }

// logins describes the logins to guests. The small system has no sshd.
func (t *Target) logins() *target.Logins {
	l := &target.Logins{Password: t.config.GuestCredential()}
	for _, name := range t.builder.templates.names() {
		if strings.Contains(t.config.Templates[name], "/") {
			l.Without = append(l.Without, name)
		}
	}
	return l
}

// LoginVM is the login of guests of cloud images: root, or the guest_user of the target file for any other user.
func (t *Target) LoginVM(ctx context.Context, vm target.VM, user string) (target.Login, error) {
	ip, err := t.AddressOf(ctx, vm)
	if err != nil {
		return target.Login{}, fmt.Errorf("find the address of vm %q: %w", vm.Name, err)
	}
	l := target.Login{Machine: vm.Name, Address: ip, User: rootUser}
	if named := t.settings.guestUser; named != "" && user != rootUser {
		l.User = named
	}
	if t.settings.through {
		n, err := t.cluster.node(ctx, vm.NodeID)
		if err != nil {
			return target.Login{}, err
		}
		l.Options = n.Through()
	}
	if l.Key, _, err = t.operations.seeds.keys.login(); err != nil {
		return target.Login{}, err
	}
	if _, l.HostKey, err = t.operations.seeds.keys.host(vm.ID); err != nil {
		return target.Login{}, err
	}
	return l, t.config.LogIn(ctx, &l)
}
