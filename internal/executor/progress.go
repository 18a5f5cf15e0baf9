package executor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/verb"
	"github.com/braggdev/bragg/internal/wait"
)

// progress records which steps have begun and ended, for loads that last over them.
type progress struct {
	mu      sync.Mutex
	begun   map[int]time.Time // by id of the step
	ended   map[int]bool
	changed chan struct{} // closed at the next change; nil without waiters
}

func (p *progress) begin(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun[id] = time.Now()
	p.tell()
}

// end notes that a step has ended or was skipped.
func (p *progress) end(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended[id] = true
	p.tell()
}

func (p *progress) tell() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// look returns the end of the part of a step that a load is extended over. If it is not known yet, look returns a channel
// that is closed at the next change.
func (p *progress) look(o plan.LastingOver) (end time.Time, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	began, ok := p.begun[o.Step]
	switch {
	case p.ended[o.Step]:
		return time.Time{}, nil
	case o.Partly && ok:
		return began.Add(o.After), nil
	}
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return time.Time{}, p.changed
}

// wait waits until all steps that a load lasts over are over. It returns false if ctx ends before.
func (p *progress) wait(ctx context.Context, l *plan.Lasting) bool {
	for _, o := range l.Over {
		for {
			end, changed := p.look(o)
			if changed == nil {
				if wait.For(ctx, time.Until(end)) != nil {
					return false
				}
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return false
			}
		}
	}
	return true
}

// stepLoads are the loads as one step sees them.
type stepLoads struct {
	*loads
	lasting *plan.Lasting // of the load that the step starts
}

// Start implements Loads.
func (s stepLoads) Start(ctx context.Context, spec verb.LoadSpec) error {
	return s.start(ctx, spec, s.lasting)
}

// runHeld runs the load on a VM. An extended load is stopped when both its runtime and the steps that it covers are over;
// its generator was started with the longest possible runtime.
func (l *loads) runHeld(ctx context.Context, run *loadRun, m *member, at time.Time) error {
	if run.lasting == nil {
		return m.held.Run(ctx, at)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if wait.For(ctx, time.Until(m.ends(run))) == nil && l.engine.progress.wait(ctx, run.lasting) {
			cancel()
		}
	}()
	err := m.held.Run(ctx, at)
	cancel()
	<-done
	return err
}

// reportLasting reports by how much a load was extended beyond its runtime.
func (l *loads) reportLasting(run *loadRun) {
	if run.lasting == nil {
		return
	}
	longer := time.Since(run.started.Add(run.spec.Runtime + run.stagger.Last)).Round(time.Millisecond)
	if longer <= 0 {
		return // it was stopped, or lost
	}
	e := l.event(run, interval.EventLog)
	e.Message = fmt.Sprintf("%s extended by %s beyond its runtime of %s, until %s", run.spec.Workload, unit.FormatDuration(longer),
		unit.FormatDuration(run.spec.Runtime), run.lasting)
	l.engine.emit(e)
}
