package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/wait"
)

// keeping is what makes a server end when its lease is not renewed.
type keeping struct {
	life  time.Duration
	timer *time.Timer
}

// Keeper configures a process that keeps a lease for a controller on another machine.
type Keeper struct {
	Scope  string        `json:"scope,omitempty"`
	Holder Holder        `json:"holder"`
	Life   time.Duration `json:"life_ns"` // how long without being renewed
}

// Keep is the body of such a process. It writes the result to ready, and returns when the lease was released, has
// expired, or could not be taken.
func Keep(ctx context.Context, text string, ready io.WriteCloser) error {
	var k Keeper
	if err := json.Unmarshal([]byte(text), &k); err != nil || k.Life <= 0 {
		return errors.Join(fmt.Errorf("keep a lease: %q says too little", text), err)
	}
	kept := &keeping{life: k.Life}
	s, other, err := bindAlone(ctx, k.Scope, owner{holder: k.Holder, keeping: kept})
	if err != nil {
		return err
	}
	answer := Answer{Fence: k.Holder.Fence, Other: other}
	if told := json.NewEncoder(ready).Encode(answer); told != nil || other != nil {
		if s != nil {
			s.end() // the lease was never reported to the controller
		}
		return errors.Join(told, ready.Close())
	}
	_ = ready.Close()
	expiry := s.expiry()
	defer expiry.Stop()
	select {
	case <-s.ended:
	case <-expiry.C:
	case <-ctx.Done():
	}
	s.end()
	s.talks.Wait()
	return nil
}

func (s *server) expiry() *time.Timer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeping.timer = time.NewTimer(s.keeping.life)
	return s.keeping.timer
}

// take renews the lease of a keeper, or passes it on from a holder that is gone. allowed says that the requester may do
// that.
func (s *server) take(o Order, allowed bool) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	other := s.holder
	switch {
	case s.keeping == nil || !allowed:
		return Answer{Other: &other}
	case o.Holder.ID == s.holder.ID:
	case o.Over != "" && o.Over == s.holder.ID:
		o.Holder.Fence = max(o.Holder.Fence, s.holder.Fence+1)
		s.holder = o.Holder
	default:
		return Answer{Other: &other}
	}
	if s.keeping.timer != nil {
		s.keeping.timer.Reset(s.keeping.life)
	}
	return Answer{Fence: s.holder.Fence}
}

func (s *server) drop(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keeping != nil && s.holder.ID == id
}

// Take takes the lease of this machine for a controller elsewhere, or renews it. command starts a process that calls Keep
// with the argument that is appended.
func Take(ctx context.Context, scope string, o Order, command []string) (Answer, error) {
	for until := time.Now().Add(bindMax); ; {
		var answer Answer
		_, err := talk(address(scope), talkMax, request{Take: &o}, &answer)
		if errors.Is(err, syscall.ECONNREFUSED) {
			// The moment of the lease is this machine's, whatever the controller's clock says.
			o.Holder.Fence = max(o.Holder.Fence, uint64(time.Now().UnixNano()))
			answer, err = startKeeper(Keeper{Scope: scope, Holder: o.Holder, Life: Life}, command)
			if other := answer.Other; err == nil && other != nil && (other.ID == o.Holder.ID || o.Over != "" && other.ID == o.Over) {
				continue // another call for the same holder was faster, or whom to replace is there after all
			}
			return answer, err
		}
		// A keeper that is about to end answers no more.
		if err == nil || errors.Is(err, context.DeadlineExceeded) || time.Now().After(until) {
			if err != nil {
				err = fmt.Errorf("ask for the lease: %w", err)
			}
			return answer, err
		}
		if err := wait.For(ctx, bindPause); err != nil {
			return answer, err
		}
	}
}

// Drop releases the lease with that id, if this machine has it.
func Drop(scope, id string) error {
	_, err := talk(address(scope), talkMax, request{Drop: id}, &struct{}{})
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, io.EOF) {
		return nil // not held
	}
	return err
}

func startKeeper(k Keeper, command []string) (Answer, error) {
	var answer Answer
	text, err := json.Marshal(k)
	if err != nil {
		return answer, err
	}
	told, tell, err := os.Pipe()
	if err != nil {
		return answer, err
	}
	defer told.Close()
	c := exec.Command(command[0], append(command[1:len(command):len(command)], string(text))...)
	c.Args[0], c.Dir, c.Env, c.Stdout = "bragg-lease", "/", []string{}, tell
	apart(c) // it outlives the connection of its request
	if err := errors.Join(c.Start(), tell.Close()); err != nil {
		return answer, fmt.Errorf("start the keeper of the lease: %w", err)
	}
	go func() { _ = c.Wait() }() // only so that it becomes no zombie: it may well outlive this program
	if err := json.NewDecoder(io.LimitReader(told, lineBytesMax)).Decode(&answer); err != nil {
		return answer, fmt.Errorf("start the keeper of the lease: %w", err)
	}
	return answer, nil
}
