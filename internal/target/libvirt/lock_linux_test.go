package libvirt

import (
	"errors"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// secrets lists the secrets of a host.
func (r *rig) secrets(t testing.TB, host int) string {
	t.Helper()
	return strings.TrimSpace(r.virsh(t, host, "secret-list"))
}

// A controller that dies leaves its lease. The next one of the same machine sees that it is dead; one that does not know
// whether it lives finds it held. A host that is off is taken when it is back.
func TestLeaseOfADeadController(t *testing.T) {
	r := newRig(t)
	l := r.open(t, t.TempDir(), nil, nil).(target.Locker)
	far := lease.NewHolder("run of another machine", 0)
	far.Process.Boot = "another"
	places := make([]lease.Place, len(r.Hosts))
	for i, h := range r.Hosts {
		host, err := virsh.NewHost(h.Name, h.URI(), virsh.Run)
		if err != nil {
			t.Fatal(err)
		}
		places[i] = leased{&node{Host: host}}
	}
	if a, err := places[1].Take(t.Context(), lease.Order{Holder: far}); err != nil || a.Other != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	_, err := l.Lock(t.Context(), lease.NewHolder("run-1", 0))
	var held *lease.HeldError
	if !errors.As(err, &held) || held.By.Run != far.Run || held.Where != r.Hosts[1].Name || held.Here() || time.Since(held.By.Renewed) > time.Hour {
		t.Errorf("got %v: %+v", err, held)
	}
	if got := r.secrets(t, 0); got != "" {
		t.Errorf("the loser has left %s", got)
	}
	// A holder of this machine that is dead.
	c := exec.Command("true")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if err := places[1].Drop(t.Context(), far.ID); err != nil {
		t.Fatal(err)
	}
	dead := lease.NewHolder("run-0", 1<<62)
	dead.Process.PID = c.Process.Pid
	for _, p := range places {
		if a, err := p.Take(t.Context(), lease.Order{Holder: dead}); err != nil || a.Other != nil {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	lock, err := l.Lock(t.Context(), lease.NewHolder("run-1", 0))
	if err != nil {
		t.Fatal(err)
	}
	if lock.Fence() <= dead.Fence {
		t.Errorf("fence %d after %d", lock.Fence(), dead.Fence)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	for i := range r.Hosts {
		if got := r.secrets(t, i); got != "" {
			t.Errorf("left: %s", got)
		}
	}
	t.Run("calls fail", func(t *testing.T) { r.lockInAStorm(t) })
}

// lockInAStorm wants no two holders although calls fail, or have their effect and seem to have failed.
func (r *rig) lockInAStorm(t *testing.T) {
	n := seed(t)
	s := &storm{random: rand.New(rand.NewPCG(n, 0)), odds: 0.3}
	one, two := r.open(t, t.TempDir(), s.run, nil).(target.Locker), r.open(t, t.TempDir(), nil, nil).(target.Locker)
	for round := range 3 {
		lock, err := one.Lock(t.Context(), lease.NewHolder("run-1", 0))
		if err != nil {
			t.Logf("round %d: %v", round, err)
			continue
		}
		if _, err := two.Lock(t.Context(), lease.NewHolder("run-2", 0)); !errors.As(err, new(*lease.HeldError)) {
			t.Errorf("round %d: two controllers have it: %v", round, err)
		}
		_ = lock.Unlock()
	}
	// What could not be given back is of a lease that this process does not have any more.
	lock, err := two.Lock(t.Context(), lease.NewHolder("run-2", 0))
	if err != nil {
		t.Fatal(err)
	}
	_ = lock.Unlock()
	for i := range r.Hosts {
		if got := r.secrets(t, i); got != "" {
			t.Errorf("left: %s", got)
		}
	}
}
