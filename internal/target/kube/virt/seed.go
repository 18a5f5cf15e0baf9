package virt

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/kube/keys"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/target/login"
	"github.com/braggdev/bragg/internal/trust"
)

// seeds are the identities of guests, and the logins to them.
type seeds struct {
	settings  Settings
	authority *trust.Authority // nil: the target was opened for reading or cleaning up
	keys      *keys.Keeper
	logins    login.Keyring
}

// plant makes the Secret with the seed of a guest: the files of cloud-init, and those of guests of bragg image build.
func (s *seeds) plant(ctx context.Context, rec object.Record, tag object.Owner) error {
	return s.keys.Plant(ctx, rec, tag, func() (*corev1.Secret, error) {
		if s.authority == nil {
			return nil, errors.New("this program has no identity that agents accept")
		}
		identity, err := s.authority.Agent(rec.VM.Name)
		if err != nil {
			return nil, err
		}
		// A system disk that outlives this program is configured again by the next one, whose authority is another.
		var random [4]byte
		_, _ = rand.Read(random[:])
		g := image.Guest{
			InstanceID: rec.VM.ID + "-" + hex.EncodeToString(random[:]), VM: rec.VM.Name, Listen: ":" + strconv.Itoa(address.AgentPort), MetricsListen: ":" + strconv.Itoa(address.MetricsPort),
			VCPUs: rec.VCPUs, RAMBytes: rec.RAMBytes, Identity: identity, User: s.settings.User,
		}
		if s.settings.Key != "" {
			g.Keys = []string{s.settings.Key}
		}
		if err := s.admit(&g, rec.VM.ID); err != nil {
			return nil, err
		}
		files, err := image.SeedFiles(g)
		if err != nil {
			return nil, err
		}
		return &corev1.Secret{ObjectMeta: rec.Meta(rec.VM.ID, tag), Data: files}, nil
	})
}

// admit lets programs of the scenario log in to a guest with the keys of this program.
func (s *seeds) admit(g *image.Guest, id string) error {
	_, key, err := s.logins.Login()
	if err != nil {
		return err
	}
	if g.RootKeys = []string{key}; g.User != "" {
		g.Keys = append(g.Keys, key)
	}
	g.HostKey, _, err = s.logins.Host(id)
	return err
}

// Login is how to log in to a VM at an address: as root, or as guest_user of the target file for any other user.
func (s *seeds) Login(vm target.VM, at, user string) (l target.Login, err error) {
	const rootUser = "root"
	l = target.Login{Machine: vm.Name, Address: at, User: rootUser}
	if s.settings.User != "" && user != rootUser {
		l.User = s.settings.User
	}
	if l.Key, _, err = s.logins.Login(); err != nil {
		return target.Login{}, err
	}
	_, l.HostKey, err = s.logins.Host(vm.ID)
	return l, err
}

// RemoveSecret deletes the seed of a guest.
func (s *seeds) RemoveSecret(ctx context.Context, rec object.Record) error {
	return s.keys.Remove(ctx, rec)
}
