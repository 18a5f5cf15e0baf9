package targettest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
)

// lockRounds is how often two controllers request the target at the same time.
const lockRounds = 5

// lock is a target's lock between this program and another that opened the same target.
func lock(s *suite) {
	first, ok := s.target.(target.Locker)
	if !ok {
		return
	}
	if s.h.Reopen == nil {
		s.Fatal("the target has a lock and no second controller can open it")
	}
	again := s.h.Reopen(s.T, s.target)
	defer func() { s.must(again.Close()) }()
	both := []target.Locker{first, again.(target.Locker)}
	if s.sharedLock(both) {
		return
	}
	var fence uint64
	for round := range lockRounds {
		locks, errs := make([]target.Lock, 2), make([]error, 2)
		var wait sync.WaitGroup
		for i, t := range both {
			wait.Go(func() { locks[i], errs[i] = t.Lock(s.Context(), lease.NewHolder(fmt.Sprint("run-", i), 0)) })
		}
		wait.Wait()
		winner := 0
		if locks[0] == nil {
			winner = 1
		}
		var held *lease.HeldError
		if locks[winner] == nil || locks[1-winner] != nil || !errors.As(errs[1-winner], &held) {
			s.Fatalf("round %d: locks %v, errors %v", round, locks, errs)
		}
		if held.By.Run != fmt.Sprint("run-", winner) || !held.Here() || held.By.Since.IsZero() {
			s.Errorf("the loser learns of %+v", held.By)
		}
		if got := locks[winner].Fence(); got <= fence {
			s.Errorf("round %d: fence %d after %d", round, got, fence)
		}
		fence = locks[winner].Fence()
		s.must(locks[winner].Unlock())
	}
}

// meetPatience only guards against hanging.
const meetPatience = 30 * time.Second

// sharedLock tests a lock that two programs may hold at the same time; false: it is not such a lock. Each must be notified
// of the other.
func (s *suite) sharedLock(both []target.Locker) bool {
	lock, err := both[0].Lock(s.Context(), lease.NewHolder("run-0", 0))
	s.must(err)
	first, ok := lock.(target.SharedLock)
	if !ok {
		s.must(lock.Unlock())
		return false
	}
	lock, err = both[1].Lock(s.Context(), lease.NewHolder("run-1", 0))
	s.must(err)
	met := func(l target.SharedLock, want string, ended bool) {
		s.Helper()
		select {
		case m := <-l.Meetings():
			if m.With.Run != want || m.Ended != ended || m.At.IsZero() {
				s.Errorf("learned of %+v, want %q, ended %t", m, want, ended)
			}
		case <-time.After(meetPatience):
			s.Errorf("did not learn of %q, ended %t", want, ended)
		}
	}
	met(first, "run-1", false)
	met(lock.(target.SharedLock), "run-0", false)
	s.must(lock.Unlock())
	met(first, "run-1", true)
	s.must(first.Unlock())
	return true
}
