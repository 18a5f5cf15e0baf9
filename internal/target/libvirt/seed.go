package libvirt

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/braggdev/bragg/internal/image"
)

// guestPlatform is what QEMU's machine here runs.
const guestPlatform = "linux/amd64"

// metricsPort is where agents of VMs offer their metrics.
const metricsPort = 7402

// seedBytesUnit is what volumes of seeds are rounded up to, so that one made anew fits into the volume of the former.
const seedBytesUnit = 1 << 20

// seeds tells whether guests get a disk that tells them who they are. A target that is only opened to be looked at or to be
// cleaned cannot make identities.
func (t *Target) seeds() bool { return t.options.Authority != nil }

// plant makes the seed of a VM.
func (t *Target) plant(ctx context.Context, b *blueprint) error {
	if !b.record.Seeded {
		return nil
	}
	content, err := t.seed(b.record)
	if err != nil {
		return err
	}
	name := volumeName(b.tag.Mark(), b.record.VM.ID, "seed")
	size := (int64(len(content))/seedBytesUnit + 2) * seedBytesUnit
	if err := b.node.createVolume(ctx, b.pool, newVolume(name, formatRaw, size)); err != nil {
		return fmt.Errorf("make seed: %w", err)
	}
	if err := b.node.uploadVolume(ctx, b.pool, name, content); err != nil {
		return fmt.Errorf("make seed: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.planted[b.record.VM.ID] = true
	return nil
}

// renew makes the seed of a VM again that another program made: the identity in it is of an authority that is gone.
func (t *Target) renew(ctx context.Context, one *seen) error {
	t.mu.Lock()
	known := t.planted[one.id]
	t.mu.Unlock()
	if known || !one.record.Seeded || !t.seeds() {
		return nil
	}
	n := one.main().node
	p, err := n.readPool(ctx, n.pool)
	if err != nil {
		return err
	}
	content, err := t.seed(one.record)
	if err != nil {
		return err
	}
	name := volumeName(one.mark, one.id, "seed")
	if _, err := n.sees(ctx, p, name); err != nil {
		return fmt.Errorf("renew seed: %w", err)
	}
	if err := n.uploadVolume(ctx, p, name, content); err != nil {
		return fmt.Errorf("renew seed: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.planted[one.id] = true
	return nil
}

// seed returns the content of a VM's seed.
func (t *Target) seed(r record) ([]byte, error) {
	identity, err := t.options.Authority.Agent(r.VM.Name)
	if err != nil {
		return nil, err
	}
	g := image.Guest{
		InstanceID: r.VM.ID, VM: r.VM.Name, Listen: ":" + strconv.Itoa(agentPort), VCPUs: r.VCPUs, RAMBytes: r.RAMBytes,
		Identity: identity, User: t.settings.guestUser, Network: []image.Link{{MAC: r.MAC}},
	}
	if t.settings.guestKey != "" {
		g.Keys = []string{t.settings.guestKey}
	}
	if len(r.VM.Addresses) > 0 {
		address := r.VM.Addresses[0]
		g.Network[0].Address, g.Network[0].Gateway = address+"/"+strconv.Itoa(t.settings.prefix), t.settings.gateway
		g.MetricsListen = net.JoinHostPort(address, strconv.Itoa(metricsPort))
	}
	from, err := t.template(r.Template)
	if err != nil {
		return nil, err
	}
	if from.kernel == nil {
		if g.Program, err = t.agentProgram(); err != nil {
			return nil, err
		}
	}
	return image.Seed(g)
}

// agentProgram reads the agent for guests whose template does not hold it.
func (t *Target) agentProgram() ([]byte, error) {
	if t.options.AgentProgram == nil {
		return nil, fmt.Errorf("find the agent for %s: this program has none", guestPlatform)
	}
	path, err := t.options.AgentProgram(guestPlatform)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
