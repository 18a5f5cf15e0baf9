package virt

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// Prepare makes the VirtualMachine of a VM, which is off, unless it exists.
func (r *Runner) Prepare(ctx context.Context, rec object.Record, tag object.Owner) error {
	one, ok, err := r.machines.Find(ctx, rec.VM.ID)
	if err != nil {
		return err
	}
	if ok && one.Object.DeletionTimestamp == nil {
		if object.MarkOf(&one.Object) != tag.Mark {
			return target.Foreign(fmt.Sprintf("virtual machine %q", rec.VM.ID))
		}
		return nil
	}
	own := func(o *machine) bool { return object.MarkOf(o) == tag.Mark && o.DeletionTimestamp == nil }
	_, err = api.Create(ctx, r.site.Client, api.Machines, r.plans.describe(rec, tag), own)
	if api.Exists(err) {
		return target.Foreign(fmt.Sprintf("virtual machine %q", rec.VM.ID))
	}
	if err != nil {
		return err
	}
	return r.machines.Await(ctx, rec.VM.ID, func(o *api.Seen[machine]) (bool, error) { return o != nil, nil })
}

// Start gives a VM power and waits until its guest runs on its node. One that does not get that far is stopped again.
func (r *Runner) Start(ctx context.Context, rec object.Record, tag object.Owner) error {
	if r.site.Off(ctx, rec.VM.NodeID) {
		return fmt.Errorf("node %q has no power", rec.VM.NodeID)
	}
	one, err := r.current(ctx, rec)
	if err != nil {
		return err
	}
	ended := "" // the instance that the VM had before
	if one != nil && !stateOf(&one.Object).On {
		ended = one.UID
	}
	if one == nil || ended != "" {
		target.Powerless(ctx, rec.VM.Name, time.Now())
		if err := r.plant(ctx, rec, tag); err != nil {
			return err
		}
		if err := r.Prepare(ctx, rec, tag); err != nil {
			return err
		}
		if err := r.request(ctx, rec, "start", `{}`); err != nil && !api.Conflict(err) { // 409: it is running, an answer was lost
			return err
		}
	}
	if err := r.running(ctx, rec, ended, one == nil || ended != ""); err != nil {
		return errors.Join(err, r.abandon(context.WithoutCancel(ctx), rec))
	}
	return nil
}

// request calls a subresource of a VirtualMachine.
func (r *Runner) request(ctx context.Context, rec object.Record, verb, body string) error {
	path := fmt.Sprintf("%s/namespaces/%s/virtualmachines/%s/%s", subresources, r.site.Client.Namespace, rec.VM.ID, verb)
	_, err := r.site.Client.Raw(ctx, http.MethodPut, path, []byte(body))
	return err
}

// running waits until the guest of a VM runs. ended is the UID of an instance that is not waited for; verify: this program chose
// the node.
func (r *Runner) running(ctx context.Context, rec object.Record, ended string, verify bool) error {
	began := time.Now()
	for {
		var last *api.Seen[instance]
		slice, cancel := context.WithTimeout(ctx, r.limits.Look)
		err := r.instances.Await(slice, rec.VM.ID, func(o *api.Seen[instance]) (bool, error) {
			if o == nil || o.UID == ended {
				if last != nil {
					return false, errors.New("its instance was deleted while it started")
				}
				return false, nil
			}
			last = o
			if s := stateOf(&o.Object); !s.On {
				return false, errors.New(s.Reason)
			}
			return o.Object.Status.Phase == phaseRunning && o.Object.Status.Node != "", nil
		})
		cancel()
		switch {
		case err == nil && verify:
			return r.placed(ctx, rec, last)
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case api.Refused(err):
			return err
		case !errors.Is(err, context.DeadlineExceeded):
			return r.explain(ctx, rec, last, err.Error())
		}
		if why := r.late(rec, last, time.Since(began)); why != "" {
			return r.explain(ctx, rec, last, why)
		}
	}
}

// placed verifies the node of a VM that was started.
func (r *Runner) placed(ctx context.Context, rec object.Record, o *api.Seen[instance]) error {
	if o.Object.Status.Node == rec.VM.NodeID {
		return nil
	}
	return &diag.Error{
		Code: "kube-unschedulable", Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("the scheduler started instance %q on node %q and not on %q; %s", rec.VM.ID, o.Object.Status.Node, rec.VM.NodeID, r.site.Events(ctx, o.UID)),
		Hint:    "the node of the VM must have room: smaller VMs, or reserve: off in the options of the target file",
	}
}

// Words of KubeVirt for a VM that does not start.
const (
	statusUnschedulable = "ErrorUnschedulable"
	statusPull          = "ErrImagePull"
	statusPullBackOff   = "ImagePullBackOff"
	statusNoClaim       = "ErrorPvcNotFound"
	statusDataVolume    = "DataVolumeError"
	statusCrash         = "CrashLoopBackOff"
)

// late returns why a VM that does not run yet has had its time; "": it has not. o may be nil.
func (r *Runner) late(rec object.Record, o *api.Seen[instance], after time.Duration) string {
	status := r.status(rec.VM.ID)
	var scheduled *condition
	if o != nil {
		scheduled = find(o.Object.Status.Conditions, conditionScheduled)
	}
	switch {
	case scheduled != nil && scheduled.Status == "False" && after >= r.limits.Unschedulable:
		return fmt.Sprintf("%s: %s", scheduled.Reason, api.Words(scheduled.Message))
	case status == statusUnschedulable && after >= r.limits.Unschedulable:
	case (status == statusPull || status == statusPullBackOff) && after >= r.limits.Image:
	case (status == statusNoClaim || status == statusDataVolume || status == statusCrash) && after >= r.limits.Image:
	case after >= r.limits.Start && o == nil:
		return "KubeVirt made no instance of it"
	case after >= r.limits.Start:
		return "its instance is " + o.Object.Status.Phase
	default:
		return ""
	}
	return "KubeVirt calls it " + status
}

// abandon undoes a start. A request to start a VM that has no instance would otherwise be carried out later.
func (r *Runner) abandon(ctx context.Context, rec object.Record) error {
	one, err := r.current(ctx, rec)
	if err != nil {
		return err
	}
	if one == nil {
		return r.removeMachine(ctx, rec)
	}
	return r.Stop(ctx, rec)
}
