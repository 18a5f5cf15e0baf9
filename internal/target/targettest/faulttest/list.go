package faulttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
)

// busy: every tenth request is answered by that the platform has too much to do.
func busy(r *trial) {
	var calls atomic.Int64
	r.gate.set(func(c call) {
		if calls.Add(1)%10 == 0 {
			r.Busy(c.w, c.r)
			return
		}
		c.pass()
	})
	r.succeeds()
}

// succeeds runs a life that must succeed in spite of the fault.
func (r *trial) succeeds() {
	r.Helper()
	if err := r.live(r.Context()); err != nil {
		r.Error(err)
	}
	r.gate.set(nil)
	r.nothingLeft()
}

// slow: every answer takes its time.
func slow(r *trial) {
	r.gate.set(func(c call) {
		time.Sleep(delay)
		c.pass()
	})
	r.succeeds()
}

const delay = 20 * time.Millisecond

// hangs: a change is never answered. The caller gives up, and what came of it is removed later.
func hangs(r *trial) {
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan struct{})
	r.gate.set(func(c call) {
		if c.number == 2 {
			cancel()
			select { // the server of the platform waits for its handlers
			case <-c.r.Context().Done():
			case <-ended:
			}
			c.lost()
		}
		c.pass()
	})
	err := r.live(ctx)
	close(ended)
	r.gate.set(nil)
	if err == nil {
		r.Error("a change that was never answered succeeded")
	}
	r.clean()
}

// answersLost: the answer of one change after the other is lost, once each. Providers may repeat or fail, and may make nothing twice.
func answersLost(r *trial) {
	r.gate.set(nil)
	r.succeeds()
	total := r.changes()
	for nth := 1; nth <= total; nth += 2 {
		r.gate.set(func(c call) {
			if c.number == nth {
				c.unanswered()
			}
			c.pass()
		})
		if err := r.live(r.Context()); err != nil {
			r.Logf("answer of change %d: %v", nth, err)
		}
		r.gate.set(nil)
		r.clean()
	}
}

// changes is how many changes a life has.
func (r *trial) changes() int {
	r.Helper()
	r.gate.set(nil)
	if err := r.live(r.Context()); err != nil {
		r.Fatal(err)
	}
	return r.gate.count()
}

// sessionsExpire: all sessions end at every fourth change.
func sessionsExpire(r *trial) {
	if r.ExpireSessions == nil {
		return // it has no sessions
	}
	r.gate.set(func(c call) {
		if c.number > 0 && c.number%4 == 0 {
			r.ExpireSessions()
		}
		c.pass()
	})
	r.succeeds()
}

// tasksLost: the platform knows its tasks no more. What cannot be known without its task may fail.
func tasksLost(r *trial) {
	if r.RememberTasks == nil {
		return // it has no tasks
	}
	r.RememberTasks(false)
	if err := r.live(r.Context()); err != nil {
		r.Log(err)
	}
	r.RememberTasks(true)
	r.clean()
}

// foreignObjects: another owner has objects with the names that a run would give to its own.
func foreignObjects(r *trial) {
	t := r.open()
	specs, err := specsOf(r.Context(), t, "OLTP")
	if err != nil {
		r.Fatal(err)
	}
	vms, err := t.Create(r.Context(), r.tag, specs)
	if err != nil {
		r.Fatal(err)
	}
	if err := t.(target.VMPower).PowerOnVMs(r.Context(), r.tag, vms); err != nil {
		r.Fatal(err)
	}
	ours := r.Left()
	if len(ours) < len(vms) {
		r.Fatalf("%d VMs, and the platform has %q", len(vms), ours)
	}
	if err := t.Delete(r.Context(), r.tag, vms); err != nil {
		r.Fatal(err)
	}
	for _, one := range ours {
		r.Plant(r.T, one)
	}
	owned, err := t.Owned(r.Context(), r.tag)
	if err != nil || len(owned) > 0 {
		r.Errorf("objects of others are ours: %+v, %v", owned, err)
	}
	if err := t.Delete(r.Context(), r.tag, vms); err != nil {
		r.Logf("delete VMs that are gone: %v", err)
	}
	r.nothingLeft()
	if err := r.live(r.Context()); err != nil {
		r.Logf("a run of the same names: %v", err)
	}
	r.clean()
}

// secondController: two controllers at the same time. One has the lease, and neither touches what the other made.
func secondController(r *trial) {
	first, second := r.open(), r.open()
	if l, ok := first.(target.Locker); ok {
		lock, err := l.Lock(r.Context(), lease.NewHolder("run-1", 0))
		if err != nil {
			r.Fatal(err)
		}
		defer func() {
			if err := lock.Unlock(); err != nil {
				r.Error(err)
			}
			r.nothingLeft()
		}()
		_, err = second.(target.Locker).Lock(r.Context(), lease.NewHolder("run-2", 0))
		var held *lease.HeldError
		if _, shared := lock.(target.SharedLock); !shared && !errors.As(err, &held) {
			r.Errorf("a second controller got %v", err)
		}
	}
	errs := make([]error, 2)
	var wait sync.WaitGroup
	for i, t := range []target.Target{first, second} {
		tag := r.tag
		tag.Run, tag.Nonce = fmt.Sprint("run-", i), fmt.Sprintf("%032x", i+1)
		wait.Go(func() { errs[i] = life(r.Context(), t, tag) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		r.Error(err)
	}
}
