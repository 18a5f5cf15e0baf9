package rehearsal

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/lab/kubelab"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
)

// Controllers that request the lease at the same moment: one gets it, all others learn who did, and its fence grows in each round.
func TestLeaseRace(t *testing.T) {
	programtest.SoakOnly(t, "runs on a real cluster for minutes")
	t.Parallel()
	const controllers, rounds = 4, 100
	r := newRig(t)
	var all []target.Locker
	for range controllers {
		all = append(all, r.open(t).(target.Locker))
	}
	var fence uint64
	for round := range rounds {
		locks, errs := make([]target.Lock, controllers), make([]error, controllers)
		var racing sync.WaitGroup
		for i, c := range all {
			racing.Go(func() { locks[i], errs[i] = c.Lock(t.Context(), lease.NewHolder(fmt.Sprint("run-", i), 0)) })
		}
		racing.Wait()
		winner := -1
		for i := range locks {
			if locks[i] != nil && winner >= 0 {
				t.Fatalf("round %d: controllers %d and %d have the lease", round, winner, i)
			}
			if locks[i] != nil {
				winner = i
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: no controller has the lease: %v", round, errs)
		}
		for i, err := range errs {
			var held *lease.HeldError
			if i != winner && (!errors.As(err, &held) || held.By.Run != fmt.Sprint("run-", winner)) {
				t.Errorf("round %d: controller %d learns %v, and %d has the lease", round, i, err, winner)
			}
		}
		if got := locks[winner].Fence(); got <= fence {
			t.Errorf("round %d: fence %d after %d", round, got, fence)
		}
		fence = locks[winner].Fence()
		if err := locks[winner].Unlock(); err != nil {
			t.Fatal(err)
		}
	}
}

// Volumes of a class that binds late are made with their VM, on its node.
func TestLateBinding(t *testing.T) {
	programtest.SoakOnly(t, "runs on a real cluster for minutes")
	t.Parallel()
	r := newRig(t)
	r.config.Pool = kubelab.StorageClassWait
	tgt := r.open(t)
	tag := targettest.NewTag("run-1")
	vms, err := tgt.Create(t.Context(), tag, r.specs(2))
	if err != nil {
		t.Fatal(err)
	}
	if err := tgt.(target.VMPower).PowerOnVMs(t.Context(), tag, vms); err != nil {
		t.Error(err)
	}
	owned, err := tgt.Owned(t.Context(), tag)
	if err != nil || len(owned) != len(vms) {
		t.Fatalf("owned are %+v, %v", owned, err)
	}
	for i, vm := range owned {
		if vm.Power != target.PowerOn || vm.NodeID != r.Nodes[i].Name {
			t.Errorf("vm %+v", vm)
		}
	}
	if err := tgt.Delete(t.Context(), tag, vms); err != nil {
		t.Error(err)
	}
	if left := r.left(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
