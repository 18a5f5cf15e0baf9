package faults

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
)

// A controller is killed at each of its changes; another one finds and removes everything, and takes the lease.
func TestKilledController(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		method string
		nth    int64
	}{
		{"CreateVM_Task", 1}, {"CloneVM_Task", 1}, {"CloneVM_Task", 3}, {"ReconfigVM_Task", 1}, {"ReconfigVM_Task", 2},
		{"ReconfigureComputeResource_Task", 1}, {"PowerOnVM_Task", 2}, {"CreateSnapshot_Task", 1}, {"CloneVM_Task", 4}, {"PowerOffVM_Task", 1},
		{"Destroy_Task", 1},
	} {
		t.Run(at.method, func(t *testing.T) {
			r := newRig(t)
			for _, passed := range []bool{true, false} { // to the vCenter, before the controller dies
				r.killAt(t, at.method, at.nth, passed)
				r.clean(t)
			}
		})
	}
}

// killAt runs a controller and kills it at its nth call of a method.
func (r *rig) killAt(t *testing.T, method string, nth int64, passed bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(order{r.file, r.tag})
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	c := exec.CommandContext(ctx, self, asController, string(text)) // SIGKILL
	noSecret(t, "the argument list", c.Args)
	out := &strings.Builder{}
	c.Stdout, c.Stderr = out, out
	var calls atomic.Int64
	var dead atomic.Bool
	r.Front(func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			here := called(q) == method && calls.Add(1) == nth
			if here && !passed || dead.Load() {
				dead.Store(true)
				kill()
				return
			}
			inner.ServeHTTP(w, q)
			if here {
				dead.Store(true)
				kill()
			}
		})
	})
	err = c.Run()
	r.Front(nil)
	if err == nil || !dead.Load() {
		t.Fatalf("it was not killed at %s %d: %v: %s", method, nth, err, out)
	}
	noSecret(t, "its output", out.String())
}

// clean does what bragg clean does.
func (r *rig) clean(t *testing.T) {
	t.Helper()
	v := r.open(t)
	defer v.Close()
	lock, err := v.(target.Locker).Lock(t.Context(), lease.NewHolder("cleaning", 0))
	if err != nil {
		t.Fatalf("take the lease of a dead controller: %v", err)
	}
	for range 10 {
		vms, err := v.Owned(t.Context(), r.tag)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Delete(t.Context(), r.tag, vms); err != nil {
			t.Fatal(err)
		}
		if len(vms) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if left := r.left(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if len(r.VMs()) != 2 {
		t.Errorf("VMs of others are missing: %v", r.VMs())
	}
}
