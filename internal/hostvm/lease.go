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

// keepLease is the argument behind the verb with which this program keeps the lease of its host. It is a process of its own,
// because connections break and runs go on.
const keepLease = "keep-lease"

func keep(ctx context.Context, p Program) int {
	if err := lease.Keep(ctx, p.Arguments[1], os.Stdout); err != nil {
		fmt.Fprintf(p.Errors, "host: %v\n", err)
		return diag.ExitUnavailable
	}
	return diag.ExitPass
}

// lease takes, renews or ends the lease of this host.
func (s *server) lease(ctx context.Context, r Request) (*lease.Answer, error) {
	if r.Lease == nil || r.Lease.Holder.ID == "" {
		return nil, errors.New("lease: it is not said for whom")
	}
	if r.Operation == OpUnlease {
		return nil, lease.Drop(r.Place.Leases, r.Lease.Holder.ID)
	}
	order := *r.Lease
	order.Holder.Renewed = time.Time{} // its keeper knows better when it ends
	answer, err := lease.Take(ctx, r.Place.Leases, order, append(slices.Clone(s.program.AgentCommand), Verb, keepLease))
	if err != nil {
		return nil, err
	}
	return &answer, nil
}
