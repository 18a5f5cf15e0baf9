//go:build linux && (amd64 || arm64)

package ioengine

import (
	"runtime"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// TestAccountsMoveWithTheWorker: a worker goes on in a thread that others have used, and what it says to have used is what it
// used itself, in all threads.
func TestAccountsMoveWithTheWorker(t *testing.T) {
	const share = 20 * time.Millisecond
	w := &worker{}
	var own int64
	var former int
	for part := range 4 {
		onThreadOfItsOwn(func() {
			if part == 0 {
				w.cpu, w.cameWith = thread.NewClock(), thread.UsageNow()
			} else {
				burn(5 * share) // of others
				w.arrive(former)
			}
			own += burn(share)
			former = w.leaveThread()
			if got := w.cpu.Nanos(); got < own || got > own+int64(share)/2 {
				t.Errorf("part %d: the clock has %v of %v", part, time.Duration(got), time.Duration(own))
			}
			burn(5 * share) // of others again, when the worker has gone
		})
	}
	w.cpu.Stop()
	if got := w.account.UserNanos + w.account.SystemNanos; got < own || got > own+int64(share)/2 {
		t.Errorf("accounted %v of %v", time.Duration(got), time.Duration(own))
	}
}

// onThreadOfItsOwn ends when f has, and with it its thread.
func onThreadOfItsOwn(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

// burn uses CPU time on this thread and returns how much.
func burn(d time.Duration) int64 {
	begun := thread.UsageNow()
	for {
		u := thread.UsageNow()
		if used := u.UserNanos + u.SystemNanos - begun.UserNanos - begun.SystemNanos; used >= int64(d) {
			return used
		}
	}
}

// TestAccountsMissNothingBetweenTicks: what getrusage says may be as old as the last tick of the kernel. A worker that rests often
// on one thread has all of its CPU time in its account, and its clock says the same.
func TestAccountsMissNothingBetweenTicks(t *testing.T) {
	onThreadOfItsOwn(func() {
		w := &worker{}
		w.cpu, w.cameWith = thread.NewClock(), thread.UsageNow()
		for range 40 {
			for begun := time.Now(); time.Since(begun) < 7*time.Millisecond; { // the kernel is not asked: that would help
			}
			w.arrive(w.leaveThread())
		}
		w.cpu.Stop()
		w.account.Usage.Add(thread.UsageNow().Since(w.cameWith))
		clock, account := w.cpu.Nanos(), w.account.UserNanos+w.account.SystemNanos
		if share := float64(account) / float64(clock); share < 0.95 || share > 1.05 {
			t.Errorf("accounted %v of %v", time.Duration(account), time.Duration(clock))
		}
	})
}
