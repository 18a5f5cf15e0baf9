package vsphere

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/login"
	"github.com/braggdev/bragg/internal/target/vsphere/record"
	"github.com/braggdev/bragg/internal/trust"
)

// metricsPort is where agents of VMs serve their metrics.
const metricsPort = 7402

// Keys that cloud-init's VMware data source reads in a guest.
const (
	keyUserData         = "guestinfo.userdata"
	keyUserDataEncoding = "guestinfo.userdata.encoding"
	keyMetaData         = "guestinfo.metadata"
	keyMetaDataEncoding = "guestinfo.metadata.encoding"
	encoding            = "base64"
)

// guests makes the identities of guests, which reach them by guestinfo: no password of a guest is needed.
type guests struct {
	authority *trust.Authority // nil: the target was opened for reading or cleaning up alone, and guests get no identity
	settings  settings
	keys      login.Keyring
	templates *templates

	mu      sync.Mutex
	planted map[string]bool // VMs whose identity this program made
}

func (g *guests) possible() bool { return g.authority != nil }

// settingsOf returns the settings with the identity of a guest.
func (g *guests) settingsOf(r record.Record, mac string) (map[string]string, error) {
	if !g.possible() {
		return nil, nil
	}
	user, meta, err := g.documents(r, mac)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		keyUserData: base64.StdEncoding.EncodeToString(user), keyUserDataEncoding: encoding,
		keyMetaData: base64.StdEncoding.EncodeToString(meta), keyMetaDataEncoding: encoding,
	}, nil
}

// plantedFor records that the VM has an identity of this program's authority.
func (g *guests) plantedFor(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.planted[id] = true
}

// stale reports whether another program made the identity of a VM: it is of an authority that is gone.
func (g *guests) stale(r record.Record) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.possible() && r.Seeded && !g.planted[r.VM.ID]
}

// documents returns user data and meta data of a guest. The network's configuration is part of the meta data.
func (g *guests) documents(r record.Record, mac string) (user, meta []byte, err error) {
	identity, err := g.authority.Agent(r.VM.Name)
	if err != nil {
		return nil, nil, err
	}
	guest := image.Guest{
		InstanceID: r.VM.ID, VM: r.VM.Name, Listen: ":" + strconv.Itoa(address.AgentPort), VCPUs: r.VCPUs, RAMBytes: r.RAMBytes,
		Identity: identity, User: g.settings.guestUser, Network: []image.Link{{MAC: mac}},
	}
	if g.settings.guestKey != "" {
		guest.Keys = []string{g.settings.guestKey}
	}
	if len(r.VM.Addresses) > 0 {
		ip, network := r.VM.Addresses[0], g.settings.addresses
		guest.Network[0].Address, guest.Network[0].Gateway = ip+"/"+strconv.Itoa(network.Prefix), network.Gateway
		guest.MetricsListen = net.JoinHostPort(ip, strconv.Itoa(metricsPort))
	}
	if err := g.admit(&guest); err != nil {
		return nil, nil, err
	}
	user, plain, network, err := image.CloudInit(guest)
	if err != nil {
		return nil, nil, err
	}
	meta, err = metaData(plain, network)
	return user, meta, err
}

// metaData joins cloud-init's two documents as its VMware data source expects them.
func metaData(plain, network []byte) ([]byte, error) {
	all := map[string]any{}
	if err := yaml.Unmarshal(plain, &all); err != nil {
		return nil, fmt.Errorf("write meta data: %w", err)
	}
	all["network"], all["network.encoding"] = base64.StdEncoding.EncodeToString(network), encoding
	return json.Marshal(all)
}

// admit lets programs of the scenario log in to a guest with the keys of this program.
func (g *guests) admit(guest *image.Guest) error {
	_, key, err := g.keys.Login()
	if err != nil {
		return err
	}
	if guest.RootKeys = []string{key}; guest.User != "" {
		guest.Keys = append(guest.Keys, key)
	}
	guest.HostKey, _, err = g.keys.Host(guest.InstanceID)
	return err
}

// LoginVM is the login of guests: root, or the guest_user of the target file for any other user.
func (t *Target) LoginVM(ctx context.Context, vm target.VM, user string) (target.Login, error) {
	const rootUser = "root"
	ip, err := t.AddressOf(ctx, vm)
	if err != nil {
		return target.Login{}, fmt.Errorf("find the address of vm %q: %w", vm.Name, err)
	}
	l := target.Login{Machine: vm.Name, Address: ip, User: rootUser}
	if named := t.settings.guestUser; named != "" && user != rootUser {
		l.User = named
	}
	keys := t.operations.guests.keys
	if l.Key, _, err = keys.Login(); err != nil {
		return target.Login{}, err
	}
	if _, l.HostKey, err = keys.Host(vm.ID); err != nil {
		return target.Login{}, err
	}
	return l, t.config.LogIn(ctx, &l)
}

// forget makes the next start of a VM renew its identity.
func (g *guests) forget(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.planted, id)
}
