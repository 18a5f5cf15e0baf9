package libvirt

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/login"
	"github.com/braggdev/bragg/internal/trust"
)

// guestPlatform is that of the agent in guests.
const guestPlatform = "linux/amd64"

// seedBytesUnit is what volumes of seeds are rounded up to, so that a renewed seed fits into the same volume.
const seedBytesUnit = 1 << 20

// seeds makes disks with the identities of guests.
type seeds struct {
	authority *trust.Authority // nil: the target was opened for reading or cleaning up alone, and guests get no seed
	program   func(platform string) (path string, err error)
	settings  settings
	keys      login.Keyring
	templates *templates

	mu      sync.Mutex
	planted map[string]bool // VMs whose seed this program made
}

func (s *seeds) possible() bool { return s.authority != nil }

// create makes the seed of a new VM.
func (s *seeds) create(ctx context.Context, p *storage.Pool, mark string, r domain.Record) error {
	if !r.Seeded {
		return nil
	}
	content, err := s.content(r)
	if err != nil {
		return err
	}
	name := storage.VolumeName(mark, r.VM.ID, "seed")
	size := (int64(len(content))/seedBytesUnit + 2) * seedBytesUnit
	if err := p.Create(ctx, storage.Volume{Name: name, Format: storage.Raw, SizeBytes: size}); err != nil {
		return fmt.Errorf("make seed: %w", err)
	}
	return s.upload(ctx, p, name, r.VM.ID, content)
}

// renew makes a seed again that another program made: the identity in it is of an authority that is gone.
func (s *seeds) renew(ctx context.Context, one *vmInfo) error {
	s.mu.Lock()
	known := s.planted[one.id]
	s.mu.Unlock()
	if known || !one.record.Seeded || !s.possible() {
		return nil
	}
	p, err := one.home().node.store.Pool(ctx)
	if err != nil {
		return err
	}
	content, err := s.content(one.record)
	if err != nil {
		return err
	}
	name := storage.VolumeName(one.mark, one.id, "seed")
	if _, err := p.Find(ctx, name); err != nil {
		return fmt.Errorf("renew seed: %w", err)
	}
	return s.upload(ctx, p, name, one.id, content)
}

func (s *seeds) upload(ctx context.Context, p *storage.Pool, name, id string, content []byte) error {
	if err := p.Upload(ctx, name, content); err != nil {
		return fmt.Errorf("write seed: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planted[id] = true
	return nil
}

func (s *seeds) content(r domain.Record) ([]byte, error) {
	identity, err := s.authority.Agent(r.VM.Name)
	if err != nil {
		return nil, err
	}
	g := image.Guest{
		InstanceID: r.VM.ID, VM: r.VM.Name, Listen: ":" + strconv.Itoa(address.AgentPort), VCPUs: r.VCPUs, RAMBytes: r.RAMBytes,
		Identity: identity, User: s.settings.guestUser, Network: []image.Link{{MAC: r.MAC}},
	}
	if s.settings.guestKey != "" {
		g.Keys = []string{s.settings.guestKey}
	}
	if len(r.VM.Addresses) > 0 {
		ip, network := r.VM.Addresses[0], s.settings.addresses
		g.Network[0].Address, g.Network[0].Gateway = ip+"/"+strconv.Itoa(network.Prefix), network.Gateway
		g.MetricsListen = net.JoinHostPort(ip, strconv.Itoa(address.MetricsPort))
	}
	from, err := s.templates.get(r.Template)
	if err != nil {
		return nil, err
	}
	if from.kernel == nil {
		if err := s.admit(&g); err != nil {
			return nil, err
		}
		if g.Program, err = s.agentProgram(); err != nil {
			return nil, err
		}
	}
	return image.Seed(g)
}

// admit lets programs of the scenario log in to a guest with the keys of this program.
func (s *seeds) admit(g *image.Guest) error {
	_, key, err := s.keys.Login()
	if err != nil {
		return err
	}
	if g.RootKeys = []string{key}; g.User != "" {
		g.Keys = append(g.Keys, key)
	}
	g.HostKey, _, err = s.keys.Host(g.InstanceID)
	return err
}

// agentProgram reads the agent for guests whose template does not hold it.
func (s *seeds) agentProgram() ([]byte, error) {
	if s.program == nil {
		return nil, fmt.Errorf("find the agent for %s: this program has none", guestPlatform)
	}
	path, err := s.program(guestPlatform)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
