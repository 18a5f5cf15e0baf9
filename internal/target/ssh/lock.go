package ssh

import (
	"context"
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/hostvm"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
)

var _ target.Locker = (*Target)(nil)

// Lock locks all hosts. On each, a process keeps the lease, which the connections of this target renew.
func (t *Target) Lock(ctx context.Context, h lease.Holder) (target.Lock, error) {
	places := make([]lease.Place, len(t.hosts))
	for i, host := range t.hosts {
		places[i] = place{host}
	}
	group, err := lease.Together(ctx, h, places)
	if err != nil {
		return nil, err
	}
	return group, nil
}

// place is the lease of a host.
type place struct{ host *host }

func (p place) Name() string { return p.host.node.Name }

func (p place) Identity(ctx context.Context) (string, error) {
	reply, err := p.host.call(ctx, hostvm.Request{Operation: hostvm.OpMachine})
	if err == nil && (reply.Info == nil || reply.Info.Boot == "") {
		err = fmt.Errorf("host %q did not report its identity", p.host.address.Name)
	}
	if err != nil {
		return "", err
	}
	return machine(*reply.Info), nil
}

// machine identifies a host by its UUID as libvirt reports it, the boot ID of its system, and its network namespace: labs
// have several per machine. Boards of some makers share one UUID, so two hosts are the same only if their boot IDs match
// too. The UUID comes first, so that hosts sort as in libvirt's provider.
func machine(i hostvm.Info) string {
	return strings.TrimSpace(i.Libvirt + " " + i.Boot + " " + i.Network)
}

func (p place) Take(ctx context.Context, o lease.Order) (lease.Answer, error) {
	reply, err := p.host.call(ctx, hostvm.Request{Operation: hostvm.OpLease, Lease: &o})
	if err == nil && reply.Lease == nil {
		err = fmt.Errorf("host %q did not report the result of the lease request", p.host.address.Name)
	}
	if err != nil {
		return lease.Answer{}, err
	}
	if other := reply.Lease.Other; other != nil {
		// Text from a host is shown on terminals.
		other.Run, other.User = textio.Line(other.Run), textio.Line(other.User)
	}
	return *reply.Lease, nil
}

func (p place) Drop(ctx context.Context, id string) error {
	_, err := p.host.call(ctx, hostvm.Request{Operation: hostvm.OpUnlease, Lease: &lease.Order{Holder: lease.Holder{ID: id}}})
	return err
}
