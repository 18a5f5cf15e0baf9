package vcenter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vmware/govmomi/task"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/wait"
)

// How long tasks of vCenter may take, by kind.
const (
	QuickMax = 10 * time.Minute // power, settings
	CopyMax  = 4 * time.Hour    // disks are copied
)

// Pauses between two looks at a task.
const (
	lookFirst = 20 * time.Millisecond
	lookMax   = 2 * time.Second
)

// A task that another one keeps from an object is requested again, for at most inUseMax.
const inUseMax = 10 * time.Minute

// ErrLost says that vCenter does not know a task any more, as after its restart: its result is unknown.
var ErrLost = errors.New("the vCenter does not know the task any more")

// Task is one change: a call that returns a task, and what is known of its effect.
type Task struct {
	Start func(ctx context.Context) (types.ManagedObjectReference, error)
	Limit time.Duration
	// Done reports whether the effect is there, although the task was lost or refused as done already. Nil: not known.
	Done func(ctx context.Context) bool
}

// Run starts a task and waits for its end. A task that is lost, or refused because its effect is there already, counts as
// done if Done says so. One that another task keeps waiting is started again. If ctx ends, the task is cancelled.
func (c *Client) Run(ctx context.Context, t Task) (result types.AnyType, err error) {
	pause := lookMax / 4
	for until := time.Now().Add(inUseMax); ; {
		result, err = c.attempt(ctx, t)
		if err == nil || !Busy(err) || time.Now().Add(pause).After(until) {
			break
		}
		if waited := wait.For(ctx, pause); waited != nil {
			return nil, waited
		}
		pause = min(2*pause, busyPauseMax)
	}
	if (errors.Is(err, ErrLost) || WrongPower(err)) && t.done(ctx) {
		return nil, nil
	}
	return result, err
}

// lostLooks is how often the effect of a task is looked for that was lost: it may still be under way.
const lostLooks = 10

// done reports whether the effect is there.
func (t Task) done(ctx context.Context) bool {
	if t.Done == nil {
		return false
	}
	for range lostLooks {
		if t.Done(ctx) {
			return true
		}
		if wait.For(ctx, lookMax/4) != nil {
			return false
		}
	}
	return false
}

func (c *Client) attempt(ctx context.Context, t Task) (types.AnyType, error) {
	ref, err := t.Start(ctx)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, t.Limit, tooLong(t.Limit))
	defer cancel()
	info, err := c.await(bounded, ref)
	if err != nil {
		if bounded.Err() != nil {
			c.giveUp(ctx, ref)
		}
		return nil, err
	}
	if info.Error != nil {
		return nil, task.Error{LocalizedMethodFault: info.Error, Description: info.Description}
	}
	return info.Result, nil
}

func tooLong(limit time.Duration) error {
	return &diag.Error{
		Code: "vsphere-task-hangs", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("the task did not end within %s", limit),
		Hint: "its state is in the list of recent tasks of the vSphere Client",
	}
}

// await polls a task until it ends. It keeps nothing in vCenter, so that it survives the end of a session.
func (c *Client) await(ctx context.Context, ref types.ManagedObjectReference) (types.TaskInfo, error) {
	pause := lookFirst
	for {
		var now mo.Task
		err := c.Collector().RetrieveOne(ctx, ref, []string{"info"}, &now)
		switch {
		case ctx.Err() != nil:
			return types.TaskInfo{}, context.Cause(ctx)
		case Gone(err):
			return types.TaskInfo{}, ErrLost
		case err != nil:
			return types.TaskInfo{}, err
		case now.Info.State == types.TaskInfoStateSuccess || now.Info.State == types.TaskInfoStateError:
			return now.Info, nil
		}
		if wait.For(ctx, pause) != nil {
			return types.TaskInfo{}, context.Cause(ctx)
		}
		pause = min(pause*3/2, lookMax)
	}
}

// cancelledMax bounds the wait for the end of a task that was cancelled.
const cancelledMax = time.Minute

// giveUp cancels a task whose caller does not want it any more, and waits for its end: what the caller removes next must be there by then. vCenter
// may refuse to cancel, as with a clone whose disks are copied, and finish the task.
func (c *Client) giveUp(ctx context.Context, ref types.ManagedObjectReference) {
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeMax)
	defer cancel()
	_, _ = methods.CancelTask(short, c.Client, &types.CancelTask{This: ref})
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelledMax)
	defer stop()
	_, _ = c.await(end, ref)
}
