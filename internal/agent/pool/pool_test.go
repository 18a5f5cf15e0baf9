package pool

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/load"
)

// TestSwitchedOffVMEndsItsWaiters: over a network, where a silent agent is called for a quarter of an hour, the load on a VM that the
// run itself switched off ends at once, and the others go on.
func TestSwitchedOffVMEndsItsWaiters(t *testing.T) {
	m := newFleet(t, 3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	errs := m.load(ctx)
	m.pool.SwitchedOff(m.vms[1])
	if err := <-errs[1]; !errors.Is(err, load.ErrLost) {
		t.Errorf("the load on the VM that was switched off ended with %v", err)
	}
	for _, i := range []int{0, 2} {
		select {
		case err := <-errs[i]:
			t.Errorf("another load ended too: %v", err)
		default:
		}
	}
	// Switched on again, it is connected again.
	if _, err := m.pool.Runner(ctx, m.vms[1]); err != nil {
		t.Error(err)
	}
	stop()
	for _, i := range []int{0, 2} {
		if err := <-errs[i]; err != nil {
			t.Error(err)
		}
	}
}

// TestManyCallersOfOneVM: concurrent callers get the same connection to a VM, also while it is being established.
func TestManyCallersOfOneVM(t *testing.T) {
	m := newFleet(t, 1)
	var wait sync.WaitGroup
	got := make([]load.Runner, 16)
	for i := range got {
		wait.Go(func() {
			var err error
			if got[i], err = m.pool.Runner(t.Context(), m.vms[0]); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, r := range got {
		if r != got[0] {
			t.Error("two connections were made to one VM")
		}
	}
	m.pool.Close()
	if _, err := m.pool.Runner(t.Context(), m.vms[0]); err == nil {
		t.Error("a VM was reached after the run")
	}
}
