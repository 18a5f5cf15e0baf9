package libvirt

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
)

var _ target.Locker = (*Target)(nil)

// Lock takes all hosts.
func (t *Target) Lock(ctx context.Context, h lease.Holder) (target.Lock, error) {
	if err := t.usable(ctx); err != nil {
		return nil, err
	}
	places := make([]lease.Place, len(t.nodes))
	for i, n := range t.nodes {
		places[i] = leased{n}
	}
	group, err := lease.Together(ctx, h, places)
	if err != nil {
		return nil, err
	}
	return group, nil
}

// leased is the lease of a host.
type leased struct{ node *node }

func (p leased) Name() string {
	if p.node.config.Name != "" {
		return p.node.config.Name
	}
	return p.node.id
}

func (p leased) Identity(ctx context.Context) (string, error) {
	host, err := p.node.host(ctx)
	return host.uuid, err
}

// secrets is the libvirt of the node, where its lease is: see lease.Secrets.
func (n *node) secrets() lease.Secrets {
	return lease.Secrets{Query: n.query, Change: func(ctx context.Context, stdin []byte, args ...string) (out []byte, err error) {
		err = patiently(ctx, func(ctx context.Context) error {
			out, err = n.change(ctx, stdin, args...)
			return err
		}, nil)
		return out, err
	}}
}

func (p leased) Take(ctx context.Context, o lease.Order) (lease.Answer, error) {
	a, err := p.node.secrets().Take(ctx, o)
	if err != nil {
		return a, fmt.Errorf("node %q: %w", p.node.id, err)
	}
	return a, nil
}

func (p leased) Drop(ctx context.Context, id string) error { return p.node.secrets().Drop(ctx, id) }
