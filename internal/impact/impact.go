// Package impact computes the cost of the events of a run phase for the loads that ran over them: depth and length of the dip, stalls,
// lost operations, time back to the baseline, latency before, during and after. VMs that an event itself took away are scored apart
// from those that lived on. It does not judge: thresholds and findings are elsewhere.
//
//	analysis.Timeline ──New──▶ events: what happened, to which VMs; baseline and time to look at for each load
//	intervals ──Add──▶ stalls and failures of each VM, ──AddLatency──▶ its latencies; analysis.Grid ──▶ its rates, second by second
//	──List──▶ result.Impact ──Sentence──▶ one sentence for people
//
//	events.go   finds events, baselines and what each event took away
//	watch.go    what intervals say about one VM during one event
//	rates.go    the seconds of one VM or several, compared with their baseline
//	noise.go    how far a baseline varies by itself, and what cannot be chance
//	score.go    puts a score together; sentence.go says it
package impact

import (
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

const (
	// eventsMax bounds the events of one run that are scored, singleMax the VMs of one load that are also scored one by one.
	eventsMax = 100
	singleMax = 256
)

// Impacts scores the events of one run. Call List after Add and AddLatency have received all intervals, in
// their order per workload and VM.
type Impacts struct {
	timeline *analysis.Timeline
	events   []*event
	over     map[analysis.Start][]*exposure // by the load that they expose
}

// New finds the events of the run phase.
func New(t *analysis.Timeline) *Impacts {
	m := &Impacts{timeline: t, over: map[analysis.Start][]*exposure{}}
	m.events = findEvents(t)
	for _, e := range m.events {
		for _, x := range e.exposures {
			key := analysis.Start{Workload: x.start.Workload, Instance: x.start.Instance}
			m.over[key] = append(m.over[key], x)
		}
	}
	return m
}

// Add takes one interval, without its latencies.
func (m *Impacts) Add(iv *interval.Interval) {
	if iv.Prefill {
		return
	}
	for _, x := range m.over[analysis.Start{Workload: iv.Workload, Instance: iv.Instance}] {
		if iv.EndNanos() > x.baseline.FromNanos && iv.StartNanos < x.untilNanos {
			x.add(iv)
		}
	}
}

// AddLatency takes the latencies of one interval, or of several of one VM that were merged between Borders.
func (m *Impacts) AddLatency(iv *interval.Interval) {
	if iv.Prefill {
		return
	}
	for _, x := range m.over[analysis.Start{Workload: iv.Workload, Instance: iv.Instance}] {
		if t := x.times(iv); t != nil {
			t.Add(iv)
			if iv.EndNanos() <= x.fromNanos {
				x.eighthOf(iv).Add(iv)
			}
		}
	}
}

// Borders returns the times at which AddLatency distinguishes intervals.
func (m *Impacts) Borders() []int64 {
	var list []int64
	for _, e := range m.events {
		for _, x := range e.exposures {
			list = append(list, x.baseline.FromNanos, x.baseline.ToNanos, x.fromNanos, x.duringTo, x.duringTo+afterMax, x.untilNanos)
			for i := range int64(len(x.eighths[0])) {
				list = append(list, x.baseline.FromNanos+i*(x.baseline.ToNanos-x.baseline.FromNanos)/int64(len(x.eighths[0])))
			}
		}
	}
	return list
}

// List returns the impact of each event on the loads that ran over it. grid is that of the run phase, and closed; stalls holds those of
// the whole run.
func (m *Impacts) List(grid *analysis.Grid, stalls *analysis.Stalls) []result.Impact {
	var list []result.Impact
	var working sync.WaitGroup
	processors := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, e := range m.events {
		i := e.Impact
		for k, x := range e.exposures {
			if k == 0 {
				i.Loads = make([]result.ImpactLoad, len(e.exposures))
			}
			processors <- struct{}{}
			working.Go(func() {
				i.Loads[k] = x.load(grid, stalls)
				<-processors
			})
		}
		list = append(list, i)
	}
	working.Wait()
	return list
}

// load scores one load over one event.
func (x *exposure) load(grid *analysis.Grid, stalls *analysis.Stalls) result.ImpactLoad {
	l := result.ImpactLoad{Workload: x.start.Workload, Group: x.start.Group, UntilNanos: x.untilNanos, Single: []result.ImpactVM{}}
	r := newRates(grid, x)
	l.Quantity = string(r.quantity)
	vms := slices.Sorted(maps.Keys(x.watches))
	for vm, w := range x.watches {
		w.silence = stalls.Of(vm, func(workload, group string, prefill bool) bool {
			return workload == x.start.Workload && group == x.start.Group && !prefill
		})
	}
	lived := slices.DeleteFunc(slices.Clone(vms), func(vm string) bool { return x.taken[vm] })
	taken := slices.DeleteFunc(slices.Clone(vms), func(vm string) bool { return !x.taken[vm] })
	l.LivedOn, l.TakenAway = x.withRange(x.score(r, lived, 1), 0), x.withRange(x.score(r, taken, 1), 1)
	for _, vm := range vms[:min(len(vms), singleMax)] {
		if s := x.score(r, []string{vm}, len(vms)); s != nil {
			l.Single = append(l.Single, result.ImpactVM{VM: vm, Taken: x.taken[vm], ImpactScore: *s})
		}
	}
	return l
}
