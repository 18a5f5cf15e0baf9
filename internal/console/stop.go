package console

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/diag"
)

const (
	// interruptedFor is how long a command that does not watch signals may take to end after one.
	interruptedFor = 2 * time.Second
	// RepeatAfter is how long after one signal another one counts. Within it, a signal is an echo: timeout(1), runners of CI jobs and
	// service managers signal the process and its group, which delivers one stop twice.
	RepeatAfter = 3 * time.Second
)

// Stop counts the stops that the user asked for: the first ends Begun, the third ends the process. Every signal may be the first. Only
// an interrupt may be a later one, because it is the key of a person: what terminates and hangs up processes may do so several times,
// and means that the process is to end, not that it is to leave things behind.
type Stop struct {
	Begun context.Context

	mu      sync.Mutex
	count   int
	counted time.Time // when count last rose
	cancel  context.CancelFunc
	signal  func(count int)
}

// listener passes signals to the command that watches them. While none does, the first signal cancels the command's context, and
// the process ends a little later.
type listener struct {
	mu      sync.Mutex
	watcher *Stop
	missed  *time.Timer // ends the process after a signal that no command watched; nil: no such signal
}

// listen takes signals until the returned function is called. The context ends with a signal that no command watches.
func (p *Process) listen(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	p.listener = &listener{}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case signal := <-p.Signals:
				p.listener.hear(signal, cancel, p.Exit)
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		close(done)
		<-ended
		cancel()
		p.listener.forgive()
		p.listener = nil
	}
}

func (l *listener) hear(signal os.Signal, cancel context.CancelFunc, exit func(code int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.watcher != nil:
		l.watcher.next(signal, exit)
	case l.missed == nil:
		cancel()
		l.missed = time.AfterFunc(interruptedFor, func() { exit(diag.ExitInterrupted) })
	}
}

// forgive keeps the process alive after a signal that no command watched, and reports whether there was one.
func (l *listener) forgive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.missed == nil {
		return false
	}
	l.missed.Stop()
	l.missed = nil
	return true
}

// watch makes s the receiver of signals, and returns the previous one.
func (l *listener) watch(s *Stop) *Stop {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.watcher
	l.watcher = s
	return before
}

// WatchSignals starts watching signals; the returned function ends that. At the first and the second stop it calls onSignal
// with their number: see Stop for what counts. A signal that arrived just before counts. Meanwhile, standard output without a reader makes writes
// fail, and does not end the process: what watches signals has something to clean up.
func (p *Process) WatchSignals(ctx context.Context, onSignal func(count int)) (*Stop, func()) {
	release := func() {}
	if p.survive != nil {
		release = p.survive()
	}
	unlisten := func() {}
	if p.listener == nil { // outside of Execute
		ctx, unlisten = p.listen(ctx)
	}
	s := &Stop{signal: onSignal}
	s.Begun, s.cancel = context.WithCancel(ctx)
	before := p.listener.watch(s)
	if p.listener.forgive() {
		s.next(syscall.SIGTERM, p.Exit)
	}
	return s, func() {
		release()
		p.listener.watch(before)
		s.cancel()
		unlisten()
	}
}

// Saying returns a function for WatchSignals that prints a line at each signal.
func (p *Process) Saying(text string) func(count int) {
	return func(int) { fmt.Fprintf(p.Stderr, "%s: %s\n", p.Name, text) }
}

// Stopped reports whether there was a signal.
func (s *Stop) Stopped() bool { return s.Begun.Err() != nil }

func (s *Stop) next(signal os.Signal, exit func(code int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count > 0 && (signal != os.Interrupt || time.Since(s.counted) < RepeatAfter) {
		return
	}
	s.counted = time.Now()
	if s.count++; s.count > 2 {
		exit(diag.ExitInterrupted)
		return
	}
	s.cancel()
	s.signal(s.count)
}
