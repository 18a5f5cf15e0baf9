package executor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/steady"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/verb"
	"github.com/braggdev/bragg/internal/wait"
)

const (
	// silentAfter: a VM whose intervals are older than those of the others by this is not waited for. Generators that read a program's log
	// may be 30 s late.
	silentAfter = int64(45 * time.Second)
	// checksPerWindow is how often a load is judged in the time of a window, at most once a second.
	checksPerWindow = 20
)

// pace is the course of a running load over all its VMs. Intervals of several VMs arrive at once.
type pace struct {
	mu     sync.Mutex
	course steady.Course
	begun  int64            // when the last VM began
	until  map[string]int64 // end of the last interval, by VM
}

func (p *pace) add(iv *interval.Interval) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[string]int64{}
	}
	if _, known := p.until[iv.VM]; !known {
		p.begun = max(p.begun, iv.StartNanos)
	}
	p.until[iv.VM] = max(p.until[iv.VM], iv.EndNanos())
	p.course.Add(iv)
}

// judge judges the last window that all VMs have reported; ok is false if the load has not lasted for as long.
func (p *pace) judge(window time.Duration, rate string) (v steady.Verdict, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var newest int64
	for _, at := range p.until {
		newest = max(newest, at)
	}
	to := newest
	for _, at := range p.until {
		if at >= newest-silentAfter {
			to = min(to, at)
		}
	}
	// Seconds of the run's axis do not begin with the load: its first and its last one are not whole.
	width := p.course.Width()
	if len(p.until) == 0 || to-int64(window)-2*width < p.begun {
		return v, false
	}
	to -= to % width
	return steady.Judge(p.course.Over(to-int64(window), to, rate).Series...), true
}

// Settle waits until a load is steady.
func (l *loads) Settle(ctx context.Context, s verb.Settling) error {
	run := l.find(s.Workload, false)
	if run == nil {
		return fmt.Errorf("wait until workload %q is steady: it was never started", s.Workload)
	}
	began := time.Now()
	e := l.event(run, interval.EventSteady)
	defer func() {
		if e.Message != "" {
			e.SpanNanos = time.Since(began).Nanoseconds()
			l.engine.emit(e)
		}
	}()
	rate := interval.Engine{}.RateUnit()
	if w, ok := l.engine.plan.Workload(s.Workload); ok && w.Load != nil {
		rate = w.Load.Engine.RateUnit()
	}
	e.Error = "too short to say"
	for {
		select {
		case <-run.done:
			e.Message = fmt.Sprintf("%s ended before it was steady: %s", s.Workload, e.Error)
			return nil
		default:
		}
		waited := time.Since(began)
		if v, ok := run.pace.judge(s.Window, rate); ok {
			if e.Error = v.Why(); v.State == steady.Steady {
				e.Message = fmt.Sprintf("%s is steady after %s: IOPS, median and p99 of its last %s", s.Workload,
					unit.FormatDuration(waited.Round(time.Second)), unit.FormatDuration(s.Window))
				return nil
			}
		}
		if waited >= s.Most {
			e.Message = fmt.Sprintf("%s did not become steady within %s: %s", s.Workload, unit.FormatDuration(s.Most), e.Error)
			return nil
		}
		if err := wait.For(ctx, min(s.Most-waited, max(s.Window/checksPerWindow, time.Second))); err != nil {
			return err
		}
	}
}
