package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/braggdev/bragg/internal/control"
)

// freeLeases gives back what programs left of leases at targets that died without a journal: before they had one, or when it
// was removed already. A target that cannot be reached is left for the next time; its lease ends by itself too,
// and what else was cleaned is not to be hidden by it.
func (c Cleaning) freeLeases(ctx context.Context) error {
	notes, err := control.LeaseNotes(c.Runs)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range notes {
		errs = append(errs, c.freeLease(ctx, n))
	}
	return errors.Join(errs...)
}

func (c Cleaning) freeLease(ctx context.Context, n control.LeaseNote) error {
	var how journalTarget
	if err := json.Unmarshal(n.How, &how); err != nil {
		c.say("lease", fmt.Sprintf("read a note of it: %v", err))
		return nil
	}
	lease, err := control.AcquireLease(c.Runs, how.Lease, "bragg clean", nil)
	if isLocked(err) {
		return nil // its run is going on
	}
	if err != nil {
		return err
	}
	lease.Cleaning = true
	t, err := openTarget(ctx, opening{how.Config, machinesDir(c.Runs, "none"), c.Program, nil})
	if err != nil {
		c.say("lease of "+how.Lease, err.Error())
		return lease.Release()
	}
	if err := lease.AtTarget(ctx, t, n.How); err != nil {
		c.say("lease of "+how.Lease, err.Error())
	}
	return errors.Join(lease.Release(), t.Close())
}
