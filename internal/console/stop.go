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

// WatchSignals begins to listen, and prints text at the first and the second signal; the returned function ends that.
func (p *Process) WatchSignals(ctx context.Context, text string) (*Stop, func()) {
	s := &Stop{signal: func(int) { fmt.Fprintf(p.Stderr, "%s: %s\n", p.Name, text) }}
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

// OnSignal has f called for the first and the second signal, with their number, in place of printing a text.
func (s *Stop) OnSignal(f func(count int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signal = f
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
