// Package nutanix is the target for an AHV cluster behind a Prism Central: its hosts are nodes, its images are templates.
//
//	Create ──▶ VM with the mark in its name and its record in the description, in one request   (record.go, create.go)
//	CloneVM ──▶ VM with the mark in its name ──▶ its own record in the description
//	PowerOnVMs, SnapshotVMs, MigrateVMs ──▶ survey of the VMs of Bragg ──▶ act on those with the tag
//	Delete ──▶ VM off ──▶ recovery points removed ──▶ VM removed
//
// Prism is the source of truth: the package keeps no state of VMs. Target is composed of parts, each with the capabilities of one
// subject. Package prism speaks HTTP, package ahv makes the requests of the API, package meter reads statistics.
package nutanix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/target/login"
	"github.com/braggdev/bragg/internal/target/nutanix/prism"
	"github.com/braggdev/bragg/internal/trust"
)

// Target is an AHV cluster.
type Target struct {
	*cluster    // hosts: inventory, ready, space, lock, what others have there
	*builder    // Create, CloneVM
	*remover    // Owned, Delete
	*operations // power, snapshots, migration, placement of VMs
	*agents     // connections to agents
	*watcher    // what the platform does
	*metrics    // of nodes and VMs
	*containers // settings of the storage container
	config      target.Config
}

var (
	_ target.Target           = (*Target)(nil)
	_ target.AgentDialer      = (*Target)(nil)
	_ target.Addresser        = (*Target)(nil)
	_ target.VMPower          = (*Target)(nil)
	_ target.Cloner           = (*Target)(nil)
	_ target.Snapshotter      = (*Target)(nil)
	_ target.Reverter         = (*Target)(nil)
	_ target.Migrator         = (*Target)(nil)
	_ target.Placer           = (*Target)(nil)
	_ target.Maintainer       = (*Target)(nil)
	_ target.ReadyChecker     = (*Target)(nil)
	_ target.DatastoreChecker = (*Target)(nil)
	_ target.SpaceMeter       = (*Target)(nil)
	_ target.Locker           = (*Target)(nil)
	_ target.Identified       = (*Target)(nil)
	_ target.OtherLister      = (*Target)(nil)
	_ target.HostChecker      = (*Target)(nil)
	_ target.GuestLogins      = (*Target)(nil)
	_ target.EventWatcher     = (*Target)(nil)
	_ target.NodeMeter        = (*Target)(nil)
	_ target.ContainerSetter  = (*Target)(nil)
	_ target.VMMeter          = (*Target)(nil)
)

// Provider is the entry of the list of providers.
func Provider() target.Provider {
	return target.Provider{
		Name:       "nutanix",
		Summary:    "Nutanix AHV clusters by Prism Central: VMs from images, recovery points as snapshots",
		FindsNodes: true,
		Open: func(ctx context.Context, c target.Config, o target.OpenOptions) (target.Target, error) {
			return open(ctx, c, o, 1)
		},
	}
}

// Credentials of the platform in a target file.
const (
	credentialUser = "platform"
	credentialKey  = "api_key"
)

// open connects to the Prism of c; quicken divides its pauses.
func open(ctx context.Context, c target.Config, o target.OpenOptions, quicken int) (target.Target, error) {
	s, err := readSettings(c)
	if err != nil {
		return nil, err
	}
	client, err := connect(ctx, c, quicken)
	if err != nil {
		return nil, err
	}
	t := assemble(c, o, s, client, quicken)
	if !slices.ContainsFunc(c.Nodes, func(n target.NodeConfig) bool { return n.BMC != nil }) {
		return t, nil
	}
	if t.cluster.bmcs, err = bmc.OpenNodes(ctx, c, &surveyor{t.cluster}); err != nil {
		return nil, err
	}
	return t.powered(), nil
}

// requestMaxQuick bounds a request in tests, also on a busy machine.
const requestMaxQuick = 5 * time.Second

// connect makes the client, with the secrets of the target file. It makes no request.
func connect(ctx context.Context, c target.Config, quicken int) (*prism.Client, error) {
	o := prism.Options{Endpoint: c.Endpoint, Quicken: quicken}
	if quicken > 1 {
		o.RequestMax = requestMaxQuick
	}
	user, byUser := c.Credentials[credentialUser]
	key, byKey := c.Credentials[credentialKey]
	switch {
	case byUser == byKey:
		return nil, &diag.Error{
			Code: "nutanix-credential", Exit: diag.ExitData, Message: "open Prism: want one of the credentials \"platform\" and \"api_key\"",
			Hint: "credentials: {platform: {user: NAME, secret: {env: NAME}}} or {api_key: {secret: {env: NAME}}}",
		}
	case byKey:
		secret, err := key.Secret.Read(ctx)
		if err != nil {
			return nil, unreadable(credentialKey, err)
		}
		o.APIKey = secret
	default:
		secret, err := user.Secret.Read(ctx)
		if err != nil {
			return nil, unreadable(credentialUser, err)
		}
		if user.User == "" {
			return nil, &diag.Error{Code: "nutanix-credential", Exit: diag.ExitData, Message: "open Prism: the credential \"platform\" has no user"}
		}
		o.User, o.Password = user.User, secret
	}
	client, err := prism.New(o)
	if err != nil {
		return nil, err
	}
	service := trust.Service{Name: "Prism", Fingerprint: c.Fingerprint, CAFile: c.CAFile, Unverified: c.TLS == target.TLSUnverified}
	verified, err := service.ClientConfig(client.Host())
	if err != nil {
		return nil, &diag.Error{Code: "nutanix-ca-file", Exit: diag.ExitData, Message: "open Prism", Err: err}
	}
	o.TLS = verified
	return prism.New(o)
}

func unreadable(name string, err error) error {
	return fmt.Errorf("open Prism: credential %q: %w", name, err)
}

func assemble(c target.Config, o target.OpenOptions, s settings, client *prism.Client, quicken int) *Target {
	hosts := &cluster{config: c, settings: s, client: client, quicken: quicken}
	images := &templates{cluster: hosts, found: map[string]string{}}
	guests := &seeds{authority: o.Authority, settings: s, keys: login.NewKeyring()}
	hosts.templates, hosts.addresses = images, &address.Allocator{Range: s.addresses}
	calls := newAgents(hosts, o.Authority)
	removing := &remover{cluster: hosts, agents: calls}
	return &Target{
		config: c, cluster: hosts, agents: calls, remover: removing, watcher: &watcher{cluster: hosts}, metrics: &metrics{cluster: hosts}, containers: &containers{cluster: hosts, dir: o.Dir},
		builder:    &builder{cluster: hosts, templates: images, seeds: guests, remover: removing},
		operations: &operations{cluster: hosts, agents: calls, seeds: guests},
	}
}

// Close ends the connections to agents and Prism. VMs stay.
func (t *Target) Close() error {
	t.cluster.closed.Store(true)
	t.agents.link.Close()
	t.cluster.client.Close()
	return nil
}

var errClosed = errors.New("the target is closed")
