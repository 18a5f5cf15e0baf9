package virt

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// hostLabel is the label by which a migration selects its node.
const hostLabel = "kubernetes.io/hostname"

// Node is where a VM migrates to.
type Node struct {
	ID   string
	Host string // the value of hostLabel
}

// Migrate moves the instance of a VM to a node, and waits until it runs there. A VM without power is left as it is.
func (r *Runner) Migrate(ctx context.Context, rec object.Record, tag object.Owner, to Node) error {
	one, err := r.current(ctx, rec)
	if err != nil {
		return err
	}
	if one == nil || !stateOf(&one.Object).On || one.Object.Status.Node == to.ID {
		return nil
	}
	if c := find(one.Object.Status.Conditions, conditionMigratable); c != nil && c.Status == "False" {
		return refused(fmt.Sprintf("KubeVirt does not migrate it: %s: %s", c.Reason, api.Words(c.Message)), "")
	}
	r.move(rec.VM.ID, true)
	defer r.move(rec.VM.ID, false)
	var random [4]byte
	_, _ = rand.Read(random[:])
	m := &migration{ObjectMeta: rec.Meta(rec.VM.ID+"-"+hex.EncodeToString(random[:]), tag)}
	m.Spec = migrationSpec{Instance: rec.VM.ID, Nodes: map[string]string{hostLabel: to.Host}}
	if err := r.migrations.Start(ctx); err != nil {
		return err
	}
	made, err := api.Create(ctx, r.site.Client, api.Migrations, m, func(o *migration) bool { return object.MarkOf(o) == tag.Mark })
	if err != nil {
		if strings.Contains(err.Error(), "addedNodeSelector") {
			return refused("this KubeVirt cannot migrate to a chosen node", "KubeVirt 1.6 and later can")
		}
		return err
	}
	err = r.moved(ctx, rec, made, to)
	// A migration whose object is deleted is cancelled, if it still runs.
	return errors.Join(err, r.site.Client.Delete(context.WithoutCancel(ctx), api.Migrations, made.Name, made.UID, -1))
}

func refused(why, hint string) error {
	return &diag.Error{Code: "kube-migration", Exit: diag.ExitUnavailable, Message: why, Hint: hint}
}

// moved waits until a migration has ended, and verifies where the VM is.
func (r *Runner) moved(ctx context.Context, rec object.Record, made *migration, to Node) error {
	bounded, cancel := context.WithTimeout(ctx, r.limits.Start)
	defer cancel()
	phase := ""
	err := r.migrations.Await(bounded, made.Name, func(o *api.Seen[migration]) (bool, error) {
		switch {
		case o == nil && phase == "":
			return false, nil // it was created and is not seen yet
		case o == nil:
			return false, errors.New("the migration was deleted")
		case o.Object.Status != nil:
			phase = o.Object.Status.Phase
		default:
			phase = "Pending"
		}
		return phase == phaseSucceeded || phase == phaseFailed, nil
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil && phase == phaseSucceeded:
		err = r.instances.Await(bounded, rec.VM.ID, func(o *api.Seen[instance]) (bool, error) {
			if o == nil || !stateOf(&o.Object).On {
				return false, errors.New("it lost its power when it moved")
			}
			return o.Object.Status.Node == to.ID, nil
		})
		if err == nil {
			return nil
		}
	case err == nil:
		err = errors.New("KubeVirt calls the migration " + phase)
	}
	return r.unmoved(ctx, rec, made, to, err)
}

// unmoved says why a migration did not succeed, in the cluster's words.
func (r *Runner) unmoved(ctx context.Context, rec object.Record, made *migration, to Node, err error) error {
	e := &diag.Error{
		Code: "kube-migration", Exit: diag.ExitUnavailable, Err: err, Message: fmt.Sprintf("migrate to node %q", to.ID),
		Hint: fmt.Sprintf("kubectl -n %s describe vmim,vmi shows more", r.site.Client.Namespace),
	}
	var words []string
	add := func(text string) {
		if text != "" {
			words = append(words, api.Words(text))
		}
	}
	// The watches may not have seen yet what KubeVirt wrote last.
	if one, failed := api.Get[instance](ctx, r.site.Client, api.Instances, rec.VM.ID); failed == nil {
		if m := one.Status.Migration; m != nil && m.UID == made.UID {
			add(m.Reason)
		}
	}
	if one, failed := api.Get[migration](ctx, r.site.Client, api.Migrations, made.Name); failed == nil && one.Status != nil {
		for _, c := range one.Status.Conditions {
			add(strings.TrimPrefix(c.Reason+": "+c.Message, ": "))
		}
	}
	add(r.site.Events(ctx, string(made.UID)))
	if len(words) > 0 {
		e.Err = fmt.Errorf("%w; %s", err, strings.Join(words, "; "))
	}
	return e
}

// conflictsMax bounds how often a VirtualMachine is written that KubeVirt changes at the same time.
const conflictsMax = 10

// Place changes the node of a VM, for its next start. All other fields of its VirtualMachine stay.
func (r *Runner) Place(ctx context.Context, rec object.Record, nodeID string) error {
	affinity, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.plans.affinity(nodeID))
	if err != nil {
		return err
	}
	for range conflictsMax {
		o, err := api.Get[unstructured.Unstructured](ctx, r.site.Client, api.Machines, rec.VM.ID)
		if api.NotFound(err) {
			return nil // the next start makes it
		}
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedField(o.Object, affinity, "spec", "template", "spec", "affinity"); err != nil {
			return err
		}
		if _, err = api.Update[unstructured.Unstructured](ctx, r.site.Client, api.Machines, o); !api.Conflict(err) {
			return err
		}
	}
	return fmt.Errorf("change virtual machine %q: others change it all the time", rec.VM.ID)
}
