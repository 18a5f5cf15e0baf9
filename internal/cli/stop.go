package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/cli/runref"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/executor"
)

// stopper turns signals into the ways to end a run: stop and undo, stop only.
type stopper struct {
	*console.Stop
	process *console.Process
	levels  chan executor.StopLevel

	mu  sync.Mutex
	run string // folder of the bundle of the current run
	say func(text string)
}

// watchStops starts watching signals; the returned function ends that.
func watchStops(ctx context.Context, p *console.Process) (*stopper, func()) {
	s := &stopper{process: p, levels: make(chan executor.StopLevel, 2)}
	stop, end := p.WatchSignals(ctx, s.signal)
	s.Stop = stop
	return s, end
}

func (s *stopper) signal(count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	level, text := executor.StopAndUndo, fmt.Sprintf("interrupted: stopping load, cleaning up, writing report (Ctrl-C after %d s skips cleanup)", console.RepeatAfter/time.Second)
	if count > 1 {
		level, text = executor.StopOnly, "cleanup skipped; to clean up later: "+s.cleanCommand()
	}
	s.levels <- level
	if s.say != nil {
		s.say("bragg: " + text)
	}
}

// cleanCommand is the command that removes what the current run leaves.
func (s *stopper) cleanCommand() string {
	if s.run == "" {
		return "bragg clean"
	}
	return runref.CleanCommand(s.process, s.run)
}

// follow sets the current run, and the function that reports signals to the user.
func (s *stopper) follow(run string, say func(text string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.say = run, say
}
