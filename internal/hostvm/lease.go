//go:build linux

package hostvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lease"
)

// keepLease is the argument after the verb with which this program keeps the lease of its host. It is a separate process,
// because runs continue when connections fail.
const keepLease = "keep-lease"

func keep(ctx context.Context, p Program) int {
	if err := lease.Keep(ctx, p.Arguments[1], os.Stdout); err != nil {
		fmt.Fprintf(p.Errors, "host: %v\n", err)
		return diag.ExitUnavailable
	}
	return diag.ExitPass
}

// machine returns the identity of this host: its boot and network, and the UUID by which its libvirt knows it.
func machine(ctx context.Context) *Info {
	i := &Info{Boot: text("/proc/sys/kernel/random/boot_id")}
	i.Network, _ = os.Readlink("/proc/self/ns/net")
	if s, ok := lease.OwnLibvirt(); ok {
		i.Libvirt, _ = s.Machine(ctx) // if it does not answer now, it does not accept leases either
	}
	return i
}

// lease acquires, renews or ends the lease of this host: that of its network, and also that of its libvirt, which
// controllers acquire that connect through libvirt.
func (s *server) lease(ctx context.Context, r Request) (*lease.Answer, error) {
	if r.Lease == nil || r.Lease.Holder.ID == "" {
		return nil, errors.New("lease: missing holder")
	}
	libvirt, ok := lease.OwnLibvirt()
	ok = ok && r.Place.Leases == "" // only tests have other scopes; they do not lease the machine's own libvirt
	if r.Operation == OpUnlease {
		err := lease.Drop(r.Place.Leases, r.Lease.Holder.ID)
		if ok {
			err = errors.Join(err, libvirt.Drop(ctx, r.Lease.Holder.ID))
		}
		return nil, err
	}
	order := *r.Lease
	order.Holder.Renewed = time.Time{} // its keeper computes its own expiry
	answer, err := lease.Take(ctx, r.Place.Leases, order, append(slices.Clone(s.program.AgentCommand), Verb, keepLease))
	if err != nil {
		return nil, err
	}
	if ok && answer.Other == nil {
		order.Holder.Fence = max(order.Holder.Fence, answer.Fence)
		// If libvirt does not answer here, it does not answer other controllers either.
		if there, err := libvirt.Take(ctx, order); err == nil {
			answer = lease.Answer{Fence: max(answer.Fence, there.Fence), Other: there.Other}
		}
	}
	return &answer, nil
}
