package nutanix

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/login"
	"github.com/braggdev/bragg/internal/trust"
)

// seeds make the user data of cloud-init, with the identities of agents.
type seeds struct {
	authority *trust.Authority // nil: the target was opened for reading or cleaning up alone, and guests get none
	settings  settings
	keys      login.Keyring
}

// userData makes the seed of a new VM. It has the agent's key.
func (s *seeds) userData(r record) ([]byte, error) {
	if s.authority == nil {
		return nil, nil
	}
	identity, err := s.authority.Agent(r.Name)
	if err != nil {
		return nil, err
	}
	g := image.Guest{
		InstanceID: uuid.NewString(), VM: r.Name, Listen: ":" + strconv.Itoa(address.AgentPort), VCPUs: r.VCPUs, RAMBytes: r.RAMBytes,
		Identity: identity, User: s.settings.guestUser,
	}
	if len(r.Addresses) > 0 {
		g.MetricsListen = net.JoinHostPort(r.Addresses[0], strconv.Itoa(address.MetricsPort))
	}
	if s.settings.guestKey != "" {
		g.Keys = []string{s.settings.guestKey}
	}
	_, key, err := s.keys.Login()
	if err != nil {
		return nil, err
	}
	if g.RootKeys = []string{key}; g.User != "" {
		g.Keys = append(g.Keys, key)
	}
	if g.HostKey, _, err = s.keys.Host(prismName(r.Mark, r.Name)); err != nil {
		return nil, err
	}
	user, _, _, err := image.CloudInit(g)
	return user, err
}

// rootUser can log in to every guest with the key of this program.
const rootUser = "root"

// LoginVM is the login of guests: root, or the guest_user of the target file for any other user.
func (o *operations) LoginVM(ctx context.Context, vm target.VM, user string) (target.Login, error) {
	ip, err := o.agents.AddressOf(ctx, vm)
	if err != nil {
		return target.Login{}, fmt.Errorf("find the address of vm %q: %w", vm.Name, err)
	}
	l := target.Login{Machine: vm.Name, Address: ip, User: rootUser}
	if named := o.seeds.settings.guestUser; named != "" && user != rootUser {
		l.User = named
	}
	if l.Key, _, err = o.seeds.keys.Login(); err != nil {
		return target.Login{}, err
	}
	s, err := o.agents.surveys.get(ctx, o.cluster.survey)
	if err != nil {
		return target.Login{}, err
	}
	if one := s.vms[vm.ID]; one != nil {
		if _, l.HostKey, err = o.seeds.keys.Host(one.VM.Name); err != nil {
			return target.Login{}, err
		}
	}
	return l, o.cluster.config.LogIn(ctx, &l)
}
