package nutanix

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
	"github.com/braggdev/bragg/internal/target/nutanix/prism"
	"github.com/braggdev/bragg/internal/wait"
)

// Prism lists a VM only at the end of the task that makes it, and it ends that task whatever becomes of the program that requested it. Who looks for
// the VM before that finds none, and it stays.
const (
	// settleMax bounds how long a cancelled call waits for the VMs that it has requested.
	settleMax = 2 * time.Minute
	// settleOthersMax bounds how long the first list of a run's VMs waits for requests of a program that has died; settlePause is between two looks.
	settleOthersMax = 10 * time.Minute
	settlePause     = time.Second
)

// settle waits until no VM is being made for a program of this user that died. It waits once for each run that this program did not make VMs for.
func (c *cluster) settle(ctx context.Context, tag target.Tag) error {
	if c.settled.has(tag) {
		return nil
	}
	for until := time.Now().Add(settleOthersMax); ; {
		making, err := c.making(ctx)
		if err != nil {
			return err
		}
		if making == "" {
			c.settled.add(tag)
			return nil
		}
		if time.Now().After(until) {
			return &diag.Error{
				Code: "nutanix-creating", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("task %q of Prism makes a VM and does not end", making),
				Hint: "its state is on the page of tasks of Prism: cancel it there",
			}
		}
		if err := wait.For(ctx, settlePause/time.Duration(max(1, c.quicken))); err != nil {
			return err
		}
	}
}

// making returns a task of this user that makes a VM and has not ended; "" without one.
func (c *cluster) making(ctx context.Context) (string, error) {
	return c.underWay(ctx, func(operation string, concerns func(prism.Entity) bool) bool {
		return (strings.Contains(operation, "create") || strings.Contains(operation, "clone")) && concerns(prism.Entity{Rel: ahv.VMRel})
	})
}

// entered waits until no task of this user puts a host into maintenance.
func (c *cluster) entered(ctx context.Context, host string) error {
	for {
		entering, err := c.underWay(ctx, func(operation string, concerns func(prism.Entity) bool) bool {
			return strings.Contains(operation, "enter") && strings.Contains(operation, "maintenance") && concerns(prism.Entity{Rel: ahv.HostRel, ExtID: host})
		})
		if err != nil || entering == "" {
			return err
		}
		if err := wait.For(ctx, settlePause/time.Duration(max(1, c.quicken))); err != nil {
			return err
		}
	}
}

// underWay returns a task of this user that has not ended; "" without one. is selects it by its operation in lower case and by the objects that it
// concerns, with any identity where that is empty. Only the latest tasks are read: older ones have ended.
func (c *cluster) underWay(ctx context.Context, is func(operation string, concerns func(prism.Entity) bool) bool) (string, error) {
	if err := c.usable(ctx); err != nil {
		return "", err
	}
	var latest []prism.Task
	_, err := c.client.Get(ctx, "prism", "config/tasks", url.Values{"$orderby": {"createdTime desc"}, "$limit": {"100"}}, &latest)
	var refused *prism.StatusError
	switch {
	case errors.As(err, &refused) && (refused.Status == http.StatusForbidden || refused.Status == http.StatusBadRequest || refused.Status == http.StatusNotFound):
		return "", nil // the user may not list tasks, or this version cannot
	case err != nil:
		return "", fmt.Errorf("list tasks: %w", err)
	}
	for _, t := range latest {
		concerns := func(want prism.Entity) bool {
			return slices.ContainsFunc(t.Entities, func(e prism.Entity) bool { return e.Rel == want.Rel && (want.ExtID == "" || e.ExtID == want.ExtID) })
		}
		if !t.Ended() && c.client.MayBeUser(t.Owner.Name) && is(strings.ToLower(t.Operation), concerns) {
			return t.ExtID, nil
		}
	}
	return "", nil
}
