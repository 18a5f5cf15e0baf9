package executor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/clock"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/wait"
)

// A load starts on all VMs of its group at one agreed time: every VM prepares first, however long that takes; then all
// receive a start time that is just far enough ahead for the last one to receive it. With a stagger, the start times of
// the VMs differ by that amount. The actual start skew is taken from the first intervals and reported in an event.

// plainHeld is a workload on a VM that cannot prepare it in advance: it is prepared when it starts.
type plainHeld struct {
	runner   load.Runner
	workload load.Workload
	sink     load.Sink
}

func (h plainHeld) Timing() load.Timing { return load.Timing{} }

func (h plainHeld) Discard() {}

func (h plainHeld) Run(ctx context.Context, at time.Time) error {
	if wait.For(ctx, time.Until(at)) != nil {
		return nil
	}
	return h.runner.Run(ctx, h.workload, h.sink)
}

// hold prepares a workload in advance, if the runner supports that.
func hold(ctx context.Context, r load.Runner, w load.Workload, sink load.Sink) (load.Held, error) {
	if p, ok := r.(load.Preparer); ok {
		return p.Prepare(ctx, w, sink)
	}
	return plainHeld{r, w, sink}, nil
}

// prepare makes all VMs ready; a VM that fails has its error.
func (l *loads) prepare(ctx context.Context, run *loadRun, w plan.Workload) {
	run.starts = &starts{late: make(map[string]time.Duration, len(run.members))}
	var wait sync.WaitGroup
	for _, m := range run.members {
		if m.err != nil {
			continue // its servers are missing
		}
		wait.Go(func() {
			look := func(iv *interval.Interval) {
				if iv.Sequence == 0 {
					l.noteStart(run, m, iv)
				}
				run.pace.add(iv)
			}
			m.held, m.err = hold(ctx, m.runner, l.value(run, m, w), watchedSink{l.engine.cfg.Intervals, look})
			if m.err != nil && ctx.Err() != nil {
				m.err = nil // stopped before it began
			}
		})
	}
	wait.Wait()
}

// agree returns when a load starts, how far ahead the start time is announced to each VM, and the error bound of their
// clocks.
func agree(members []*member) (at time.Time, ahead, clockError time.Duration) {
	var slowest time.Duration
	notified := 0
	for _, m := range members {
		if m.held == nil {
			continue
		}
		if _, plain := m.held.(plainHeld); !plain {
			notified++
		}
		t := m.held.Timing()
		slowest, clockError = max(slowest, t.Trip), max(clockError, t.ClockError)
	}
	if notified > 1 { // a single VM starts on receipt
		ahead = clock.Ahead(slowest, notified)
	}
	return time.Now().Add(ahead), ahead, clockError
}

// splitTime bounds the time for which a step waits for the intervals of loads to be split.
const splitTime = time.Second

// split ends the intervals of all running loads at one agreed time, and returns at that time: the window of a step begins there
// exactly. It is at once when no load can do that. An agent that does not learn of it in time does not split.
func (l *loads) split(ctx context.Context) time.Time {
	var members []*member
	l.mu.Lock()
	for _, run := range l.latest {
		select {
		case <-run.done:
			continue
		case <-run.launched:
		default:
			continue
		}
		for _, m := range run.members {
			if _, ok := m.held.(load.Splitter); ok {
				members = append(members, m)
			}
		}
	}
	l.mu.Unlock()
	if len(members) == 0 {
		return time.Now()
	}
	var slowest time.Duration
	for _, m := range members {
		slowest = max(slowest, m.held.Timing().Trip)
	}
	at := time.Now().Add(min(clock.Ahead(slowest, len(members)), splitTime))
	bounded, cancel := context.WithDeadline(ctx, at)
	defer cancel()
	for _, m := range members {
		l.engine.work.Go(func() { _ = m.held.(load.Splitter).Split(bounded, at) }) // otherwise its interval crosses the border
	}
	_ = wait.For(ctx, time.Until(at))
	return at
}

// driveTogether runs the load on all its VMs in parallel, each from its own start time on.
func (l *loads) driveTogether(ctx context.Context, run *loadRun, w plan.Workload) {
	l.prepare(ctx, run, w)
	at, ahead, clockError := agree(run.members)
	run.stagger = run.spec.Staggered(len(run.members), l.engine.plan.TimeFactor())
	l.began(run, at)
	run.starts.clockError = clockError
	for i, m := range run.members {
		m.planned = at.Add(run.stagger.Gap * time.Duration(i))
	}
	var driving sync.WaitGroup
	for _, m := range run.members {
		driving.Go(func() { l.driveHeld(ctx, run, m, w, ahead) })
	}
	driven, ended := context.WithCancel(ctx)
	defer ended()
	go func() {
		driving.Wait()
		ended()
	}()
	_ = wait.For(driven, time.Until(at))
	l.engine.emitAt(l.event(run, interval.EventWorkloadStart), earlier(at, time.Now()))
	_ = wait.For(driven, time.Until(at.Add(run.stagger.Held)))
	close(run.launched)
	driving.Wait()
	l.reportStarts(run)
	l.reportLasting(run)
}

// earlier returns the start time of a load: the agreed one, however late this program woke up, because intervals count
// from it. A load that ended before the agreed time never reached it.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// began notes when a load started, for the steps that wait for its end.
func (l *loads) began(run *loadRun, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	run.started = at
}

func (l *loads) driveHeld(ctx context.Context, run *loadRun, m *member, w plan.Workload, ahead time.Duration) {
	switch {
	case m.held == nil: // it could not be prepared, or has been canceled
	case wait.For(ctx, time.Until(m.planned.Add(-ahead))) == nil:
		m.err = l.runHeld(ctx, run, m, m.planned)
		comeback{l, run, m, w}.follow(ctx)
	default:
		m.held.Discard()
	}
	l.settle(run, m)
}

// watchedSink passes intervals on after a look at them.
type watchedSink struct {
	next load.Sink
	look func(iv *interval.Interval)
}

// Interval implements load.Sink.
func (s watchedSink) Interval(iv interval.Interval) {
	s.look(&iv)
	s.next.Interval(iv)
}

// starts collects the start delays of the VMs of a load. They are reported once, when all VMs have started or no more can.
type starts struct {
	mu         sync.Mutex
	late       map[string]time.Duration // by VM: delay after the agreed time
	reported   bool
	clockError time.Duration
}

func (l *loads) noteStart(run *loadRun, m *member, iv *interval.Interval) {
	s := run.starts
	began := l.engine.cfg.Zero.Add(time.Duration(iv.StartNanos))
	s.mu.Lock()
	s.late[m.vm.Name] = began.Sub(m.planned)
	all := len(s.late) == len(run.members)
	s.mu.Unlock()
	if all {
		l.reportStarts(run)
	}
}

// reportStarts reports the start skew of the VMs once, each relative to its own start time.
func (l *loads) reportStarts(run *loadRun) {
	s := run.starts
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reported || len(s.late) < 2 {
		return
	}
	s.reported = true
	var first, last time.Duration
	worst := ""
	for vm, late := range s.late {
		if worst == "" || late < first {
			first = late
		}
		if worst == "" || late > last || late == last && vm < worst {
			worst, last = vm, late
		}
	}
	e := l.event(run, interval.EventStarts)
	e.SpanNanos, e.Subject = int64(last-first), worst
	e.Message = fmt.Sprintf("start skew %s (%d VMs; last: %s, +%s)", brief(last-first), len(s.late), worst, brief(last))
	if s.clockError > 0 {
		e.Message += fmt.Sprintf("; clock error ±%s", brief(s.clockError))
	}
	l.engine.emit(e)
}

// brief formats a duration that is usually less than a second.
func brief(d time.Duration) string {
	if d.Abs() >= time.Second {
		return unit.FormatDuration(d)
	}
	return fmt.Sprintf("%.2f ms", float64(d)/1e6)
}
