package nutanix

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/faults"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// underWay reports whether Prism has a task of that operation that has not ended; "" is any.
func (r *rig) underWay(operation string) (found bool) {
	r.State.Read(func(d *state.Data) {
		for _, task := range d.Tasks {
			found = found || (operation == "" || task.Operation == operation) && (task.Status == state.Queued || task.Status == state.Running)
		}
	})
	return found
}

// await waits until a condition holds, or for as long as the test has.
func await(t *testing.T, condition func() bool) {
	for !condition() && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// VMs that appear after the call that requested them was cancelled do not stay.
func TestCancelledWhileMaking(t *testing.T) {
	r := newRig(t, prism.Options{})
	l := r.open(t, nil)
	defer l.Close()
	tag := targettest.NewTag("run-1")
	source, err := l.Create(t.Context(), tag, specs(t, l, "OLTP", 1))
	if err != nil {
		t.Fatal(err)
	}
	r.Faults.Add(faults.Rule{Task: "VmC*", After: 150 * time.Millisecond})
	for operation, do := range map[string]func(ctx context.Context) ([]target.VM, error){
		"VmCreate": func(ctx context.Context) ([]target.VM, error) { return l.Create(ctx, tag, specs(t, l, "DSS", 2)) },
		"VmClone": func(ctx context.Context) ([]target.VM, error) {
			return l.(target.Cloner).CloneVM(ctx, tag, source[0], specs(t, l, "CLONE", 2), false)
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stopped by the user")
		go func() {
			await(t, func() bool { return r.underWay(operation) })
			cancel(stop)
		}()
		if vms, err := do(ctx); !errors.Is(err, stop) {
			t.Errorf("%s: got %+v, %v", operation, vms, err)
		}
		await(t, func() bool { return !r.underWay("") })
		if left := r.leftovers(); len(left) != 1 {
			t.Errorf("%s: left %q", operation, left)
		}
	}
}

// The VMs of a program that died while Prism made them are found.
func TestDiedWhileMaking(t *testing.T) {
	r := newRig(t, prism.Options{})
	l := r.open(t, nil)
	defer l.Close()
	tag := targettest.NewTag("run-1")
	r.Faults.Add(faults.Rule{Task: "VmCreate", After: 300 * time.Millisecond})
	ended := make(chan error)
	go func() {
		_, err := l.Create(t.Context(), tag, specs(t, l, "OLTP", 2))
		ended <- err
	}()
	await(t, func() bool { return r.underWay("VmCreate") })
	again := r.open(t, nil)
	defer again.Close()
	owned, err := again.Owned(t.Context(), tag)
	if err != nil || len(owned) != 2 {
		t.Errorf("found %+v, %v", owned, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A node does not stay in maintenance that it enters after the call was cancelled and undone.
func TestCancelledMaintenance(t *testing.T) {
	r := newRig(t, prism.Options{})
	r.config.Allow.Maintenance = true
	l := r.open(t, nil)
	defer l.Close()
	inventory, err := l.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	node, m := inventory.Nodes[0].ID, l.(target.Maintainer)
	r.Faults.Add(faults.Rule{Task: "EnterHostMaintenance", After: 150 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		await(t, func() bool { return r.underWay("EnterHostMaintenance") })
		cancel()
	}()
	if err := m.EnterMaintenance(ctx, node); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := m.ExitMaintenance(t.Context(), node); err != nil {
		t.Error(err)
	}
	await(t, func() bool { return !r.underWay("") })
	r.State.Read(func(d *state.Data) {
		if h := d.Hosts[0]; h.Maintenance != state.Normal {
			t.Errorf("host %s is left in state %s", h.Name, h.Maintenance)
		}
	})
}
