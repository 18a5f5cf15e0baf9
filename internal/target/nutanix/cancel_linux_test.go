package nutanix

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/faults"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// latest is the last task of an operation; its zero value: none.
func (r *rig) latest(operation string) (task state.Task) {
	r.State.Read(func(d *state.Data) {
		for _, t := range d.Tasks {
			if t.Operation == operation {
				task = *t
			}
		}
	})
	return task
}

// interrupt calls do, ends its context as soon as begun is true, and expects do to say so.
func interrupt(t *testing.T, begun func() bool, do func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	for !begun() {
		select {
		case err := <-ended:
			t.Fatalf("ended before it was interrupted: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// A migration and an evacuation that a run does not wait for any more are cancelled. What Prism cannot cancel goes on, and does not keep a
// VM from its removal.
func TestInterruptedTasks(t *testing.T) {
	r := newRig(t, prism.Options{})
	r.config.Allow.Maintenance = true
	l := r.open(t, nil).(*Target)
	defer l.Close()
	tag := targettest.NewTag("run-1")
	vms, err := l.Create(t.Context(), tag, specs(t, l, "OLTP", 2))
	if err == nil {
		err = l.PowerOnVMs(t.Context(), tag, vms[:1])
	}
	if err == nil {
		err = l.SnapshotVMs(t.Context(), tag, vms, "before")
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Faults.Add(faults.Rule{Task: "VmMigrate", After: time.Hour}, faults.Rule{Task: "EnterHostMaintenance", After: time.Hour}, faults.Rule{Task: "VmRevert", After: 300 * time.Millisecond})
	running := func(operation string) func() bool {
		return func() bool { return r.latest(operation).Status == state.Running }
	}
	interrupt(t, running("VmMigrate"), func(ctx context.Context) error { return l.MigrateVMs(ctx, tag, vms[:1], vms[1].NodeID) })
	interrupt(t, running("EnterHostMaintenance"), func(ctx context.Context) error { return l.EnterMaintenance(ctx, vms[0].NodeID) })
	interrupt(t, running("VmRevert"), func(ctx context.Context) error { return l.RevertVMs(ctx, tag, vms[1:], "before") })
	for _, operation := range []string{"VmMigrate", "EnterHostMaintenance"} {
		if task := r.latest(operation); task.Status != state.Canceled {
			t.Errorf("%s is %s", operation, task.Status)
		}
	}
	owned, err := l.Owned(t.Context(), tag)
	if err != nil || len(owned) != 2 || owned[0].NodeID != vms[0].NodeID || owned[0].Power != target.PowerOn {
		t.Errorf("owned: %+v, %v", owned, err)
	}
	if err := l.Delete(t.Context(), tag, owned); err != nil {
		t.Error(err)
	}
	if left := r.leftovers(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// An upload that is interrupted leaves no image, wherever it is.
func TestInterruptedUpload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "debian.raw")
	if err := os.WriteFile(file, []byte("system"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRigOf(t, prism.Options{}, nil)
	r.config.Templates = map[string]string{template: file}
	for name, c := range map[string]struct {
		rule  faults.Rule
		begun func(sent int) bool
	}{
		"image": {
			faults.Rule{Task: "ImageCreate", After: 200 * time.Millisecond, Times: 1},
			func(int) bool { return r.latest("ImageCreate").Status == state.Running },
		},
		"content": {faults.Rule{Request: "PUT /api/nutanix/v3/images/*/file", Delay: time.Hour}, func(before int) bool { return r.sent() > before }},
		"task": {
			faults.Rule{Task: "ImageUpload", After: 200 * time.Millisecond, Times: 1},
			func(int) bool { return r.latest("ImageUpload").Status == state.Running },
		},
	} {
		l := r.open(t, nil)
		defer l.Close()
		all, before := specs(t, l, "OLTP", 1), r.sent()
		r.Faults.Add(c.rule)
		interrupt(t, func() bool { return c.begun(before) }, func(ctx context.Context) error {
			_, err := l.Create(ctx, targettest.NewTag("run-1"), all)
			return err
		})
		r.Faults.Clear()
		if images := r.uploads(); len(images) > 0 || len(r.leftovers()) > 0 {
			t.Errorf("%s: left images %+v, %q", name, images, r.leftovers())
		}
	}
}
