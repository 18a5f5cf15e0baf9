package executor

import (
	"context"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
)

// removeWithin bounds how long one VM may take: teardown must come to its end.
const removeWithin = 5 * time.Minute

// Remove takes away what prefills made outside of their VMs, each once; see verb.Loads.
func (l *loads) Remove(ctx context.Context) {
	for _, w := range l.engine.plan.Workloads {
		run := l.find(w.Name, true)
		if w.Prefill == nil || w.Prefill.Removes == "" || run == nil || !l.claimRemoval(run) {
			continue
		}
		for _, m := range run.members {
			l.remove(ctx, run, m, w)
		}
	}
}

// claimRemoval reports whether this is the first call for the run.
func (l *loads) claimRemoval(run *loadRun) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !run.removed
	run.removed = true
	return first
}

// remove runs the removal on one VM. Its intervals are not recorded: it measures nothing.
func (l *loads) remove(ctx context.Context, run *loadRun, m *member, w plan.Workload) {
	ctx, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	value := l.value(run, m, w)
	value.Remove = true
	runner, err := l.engine.cfg.Runner(ctx, m.vm)
	if err == nil {
		err = runner.Run(ctx, value, load.SinkFunc(func(interval.Interval) {}))
	}
	e := interval.Event{Kind: interval.EventRemoved, Phase: l.engine.phaseName(), Workload: w.Name, Group: run.group, Subject: m.vm.Name,
		Message: "removed " + w.Prefill.Removes}
	if err != nil {
		stays := "stays"
		if m.err != nil { // the prefill failed, before it wrote anything or after
			stays = "may be left"
		}
		e.Kind, e.Error = interval.EventDisturbance, err.Error()
		e.Message = fmt.Sprintf("%s %s: %s cannot remove it", w.Prefill.Removes, stays, m.vm.Name)
	}
	l.engine.emit(e)
}
