package virt

import (
	"context"
	"errors"
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// Stop cuts the power of a VM and waits until its instance is gone: KubeVirt keeps it until its pods are. An instance that has ended
// stays, with why it did.
func (r *Runner) Stop(ctx context.Context, rec object.Record) error {
	one, err := r.current(ctx, rec)
	if err != nil || one == nil || final(&one.Object) {
		return err
	}
	r.stopping(one)
	err = r.request(ctx, rec, "stop", `{"gracePeriod":0}`)
	switch {
	case api.NotFound(err), api.Conflict(err): // it is not running any more, or its VM is being deleted
	case err != nil:
		return err
	}
	return r.gone(ctx, one)
}

// gone waits until an instance has ended with its pods.
func (r *Runner) gone(ctx context.Context, one *api.Seen[instance]) error {
	node := one.Object.Status.Node
	if r.site.Dead(ctx, node) {
		if err := r.force(ctx, one.UID); err != nil {
			return err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, r.limits.Stop)
	defer cancel()
	err := r.instances.Await(bounded, one.Name, func(o *api.Seen[instance]) (bool, error) { return o == nil || o.UID != one.UID, nil })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return &diag.Error{
			Code: "kube-vm-stays", Exit: diag.ExitUnavailable, Err: err,
			Message: fmt.Sprintf("instance %q was stopped and is still there after %s", one.Name, r.limits.Stop),
			Hint:    fmt.Sprintf("the kubelet or virt-handler of node %q may not answer: kubectl get nodes; kubectl get pods -A -l kubevirt.io=virt-handler", node),
		}
	}
	return err
}

// force deletes the pods of an instance whose node does not answer: no kubelet confirms that they have stopped.
func (r *Runner) force(ctx context.Context, uid string) error {
	pods, err := r.launchers(ctx, uid)
	for _, p := range pods {
		err = errors.Join(err, r.site.Client.Delete(ctx, api.Pods, p.Name, p.UID, 0))
	}
	return err
}

// Remove ends a VM and deletes its VirtualMachine with its instance and its migrations, so that nothing uses its disks. Start makes
// another one.
func (r *Runner) Remove(ctx context.Context, rec object.Record) error {
	if err := r.removeMigrations(ctx, rec); err != nil {
		return err
	}
	return r.removeMachine(ctx, rec)
}

func (r *Runner) removeMachine(ctx context.Context, rec object.Record) error {
	one, ok, err := r.machines.Find(ctx, rec.VM.ID)
	if err != nil {
		return err
	}
	if ok && object.MarkOf(&one.Object) != rec.Mark {
		return nil // another's, which stays
	}
	running, err := r.current(ctx, rec)
	if err != nil {
		return err
	}
	if running != nil {
		r.stopping(running)
	}
	if ok {
		if err := r.site.Client.Delete(ctx, api.Machines, one.Name, one.Object.UID, -1); err != nil {
			return err
		}
	}
	if running != nil {
		if err := r.gone(ctx, running); err != nil {
			return err
		}
	}
	if !ok {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, r.limits.Stop)
	defer cancel()
	return r.machines.Await(bounded, one.Name, func(o *api.Seen[machine]) (bool, error) { return o == nil || o.UID != one.UID, nil })
}

func (r *Runner) removeMigrations(ctx context.Context, rec object.Record) error {
	all, err := r.migrations.All(ctx)
	if api.Forbidden(err) {
		return nil // then there are none
	}
	if err != nil {
		return err
	}
	for _, one := range all {
		if object.MarkOf(&one.Object) == rec.Mark && one.Object.Labels[object.LabelVM] == rec.VM.ID {
			if err := r.site.Client.Delete(ctx, api.Migrations, one.Name, one.Object.UID, -1); err != nil {
				return err
			}
		}
	}
	return nil
}
