package libvirt

import (
	"context"
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/target"
)

// rootUser can log in to every guest of a cloud image with the key of this program.
const rootUser = "root"

// logins describes the logins to guests. The small system has no sshd.
func (t *Target) logins() *target.Logins {
	l := &target.Logins{Password: t.config.GuestCredential()}
	for _, name := range t.config.TemplateNames() {
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
	if l.Key, _, err = t.operations.seeds.keys.Login(); err != nil {
		return target.Login{}, err
	}
	if _, l.HostKey, err = t.operations.seeds.keys.Host(vm.ID); err != nil {
		return target.Login{}, err
	}
	return l, t.config.LogIn(ctx, &l)
}
