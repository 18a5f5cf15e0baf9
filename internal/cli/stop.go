package cli

import (
	"context"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/run"
)

// stopper turns signals into the three ways to end: stop and undo, stop only, exit.
type stopper struct {
	process *Process
	levels  chan run.StopLevel
	begun   context.Context // ends with the first signal
	cancel  context.CancelFunc

	mu    sync.Mutex
	count int
	run   string // folder of the bundle of the run that goes on
	say   func(text string)
}

// watchSignals begins to listen; the returned function ends that.
func (p *Process) watchSignals(ctx context.Context) (*stopper, func()) {
	s := &stopper{process: p, levels: make(chan run.StopLevel, 2)}
	s.begun, s.cancel = context.WithCancel(ctx)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-p.Signals:
				s.signal()
			case <-done:
				return
			}
		}
	}()
	return s, func() {
		close(done)
		<-ended
		s.cancel()
	}
}

func (s *stopper) signal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	switch s.count {
	case 1:
		s.cancel()
		s.levels <- run.StopAndUndo
		s.tell("stopping: the load ends, everything is undone and the report is written; once more leaves things undone")
	case 2:
		s.levels <- run.StopOnly
		s.tell("ending now; what is left is removed by: " + s.cleanCommand())
	default:
		s.process.Exit(diag.ExitInterrupted)
	}
}

// cleanCommand removes what the run that goes on leaves.
func (s *stopper) cleanCommand() string {
	if s.run == "" {
		return "bragg clean"
	}
	return s.process.cleanCommand(s.run)
}

func (s *stopper) tell(text string) {
	if s.say != nil {
		s.say("bragg: " + text)
	}
}

// follow says which run goes on and where to tell the user about signals.
func (s *stopper) follow(run string, say func(text string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.say = run, say
}

// stopped tells whether there was a signal.
func (s *stopper) stopped() bool { return s.begun.Err() != nil }
