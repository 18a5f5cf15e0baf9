package console

import (
	"context"
	"fmt"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
)

// Stop counts the signals that ask a process to end: the first ends Begun, the third ends the process.
type Stop struct {
	Begun context.Context

	mu     sync.Mutex
	count  int
	signal func(count int)
}

// WatchSignals begins to listen; the returned function ends that. At the first and the second signal it calls onSignal with
// their number.
func (p *Process) WatchSignals(ctx context.Context, onSignal func(count int)) (*Stop, func()) {
	s := &Stop{signal: onSignal}
	begun, cancel := context.WithCancel(ctx)
	s.Begun = begun
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-p.Signals:
				s.next(cancel, p.Exit)
			case <-done:
				return
			}
		}
	}()
	return s, func() {
		close(done)
		<-ended
		cancel()
	}
}

// Saying returns what prints a line at each signal, for WatchSignals.
func (p *Process) Saying(text string) func(count int) {
	return func(int) { fmt.Fprintf(p.Stderr, "%s: %s\n", p.Name, text) }
}

// Stopped reports whether there was a signal.
func (s *Stop) Stopped() bool { return s.Begun.Err() != nil }

func (s *Stop) next(cancel context.CancelFunc, end func(code int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count++; s.count > 2 {
		end(diag.ExitInterrupted)
		return
	}
	cancel()
	s.signal(s.count)
}
