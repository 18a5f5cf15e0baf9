// Package staircase recognizes runs that start the same closed loop on more and more VMs, and measures throughput and response time
// against their number. The fit is that of package scaling.
//
//	timeline, plan ──Find──▶ Staircase ── Add(interval) … ──▶ Scaling
package staircase

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scaling"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// stairsMin is the number of different numbers of workers from which a run is a staircase. With fewer than scaling.PointsMin
	// it has no fit, and the report says so.
	stairsMin = 3
	// settleMax and settleShare are the start of each step that is left out: the new workers change the load of all others.
	settleMax   = 10 * time.Second
	settleShare = 0.2
	// stairStartsMax bounds the starts of loads in a run that is looked at: more are a repetition, not a staircase.
	stairStartsMax = 500
	// stairLengthMin is the shortest step, without its start.
	stairLengthMin = 3 * time.Second
	// edgeNanos is how far an interval may cross the border of a step: events and intervals are timestamped by different programs.
	edgeNanos = 25e6
)

// Staircase collects the steps of one load that a run starts on more and more VMs.
type Staircase struct {
	kind   string
	loads  map[analysis.Start]bool
	stairs []*stair // in the order of time
}

// stair is a stretch in which no load started or ended.
type stair struct {
	fromNanos, toNanos int64 // without the start
	streams            map[streamKey]*stream
	times              analysis.Times
}

type streamKey struct {
	load analysis.Start
	vm   string
}

// stream is one worker: one VM that runs the load.
type stream struct {
	operations uint64
	nanos      int64
}

// Find finds, for each kind of closed loop, the stretches in which no other load runs.
func Find(t *analysis.Timeline, p *plan.Plan, engines map[string]interval.Engine) []*Staircase {
	phase, ok := t.Phase("run")
	if !ok {
		return nil
	}
	starts, borders := []analysis.LoadStart{}, []int64{}
	for _, s := range t.Starts {
		if s.FromNanos >= phase.FromNanos && s.FromNanos < phase.ToNanos {
			starts = append(starts, s)
			borders = append(borders, s.FromNanos, min(s.ToNanos, phase.ToNanos))
		}
	}
	if len(starts) > stairStartsMax {
		return nil
	}
	slices.Sort(borders)
	borders = slices.Compact(borders)
	byKind := map[string]*Staircase{}
	var list []*Staircase
	for _, s := range starts {
		kind := loadKind(p, s.Workload)
		if kind == "" || engines[s.Workload].Loop != interval.LoopClosed {
			continue
		}
		if byKind[kind] == nil {
			byKind[kind] = &Staircase{kind: kind, loads: map[analysis.Start]bool{}}
			list = append(list, byKind[kind])
		}
		byKind[kind].loads[analysis.Start{Workload: s.Workload, Instance: s.Instance}] = true
	}
	for i := 1; i < len(borders); i++ {
		from, to := borders[i-1], borders[i]
		from += min(int64(settleMax), int64(settleShare*float64(to-from)))
		if to-from < int64(stairLengthMin) {
			continue
		}
		if c := onlyKind(list, starts, from, to); c != nil {
			c.stairs = append(c.stairs, &stair{fromNanos: from, toNanos: to, streams: map[streamKey]*stream{}})
		}
	}
	return slices.DeleteFunc(list, func(c *Staircase) bool { return len(c.stairs) < stairsMin })
}

// loadKind describes a workload so that two with the same description load the platform alike; "" if the plan does not know it.
func loadKind(p *plan.Plan, workload string) string {
	w, ok := p.Workload(workload)
	g, known := p.Group(w.Group)
	if !ok || !known {
		return ""
	}
	return fmt.Sprint(w.ConfigFile, "\x00", w.Generator, w.Options, g.VCPUs, g.RAMBytes)
}

// onlyKind returns the staircase to which all loads between two times belong, nil if there is none.
func onlyKind(list []*Staircase, starts []analysis.LoadStart, from, to int64) (only *Staircase) {
	for _, s := range starts {
		if s.FromNanos >= to || s.ToNanos <= from {
			continue
		}
		at := slices.IndexFunc(list, func(c *Staircase) bool { return c.loads[analysis.Start{Workload: s.Workload, Instance: s.Instance}] })
		if at < 0 || only != nil && only != list[at] {
			return nil
		}
		only = list[at]
	}
	return only
}

// Borders are the times at which Add distinguishes intervals.
func (c *Staircase) Borders() (list []int64) {
	for _, s := range c.stairs {
		list = append(list, s.fromNanos, s.toNanos)
	}
	return list
}

// Add takes an interval that is within one step.
func (c *Staircase) Add(iv *interval.Interval) {
	load := analysis.Start{Workload: iv.Workload, Instance: iv.Instance}
	if iv.Prefill || !c.loads[load] {
		return
	}
	at, _ := slices.BinarySearchFunc(c.stairs, iv.StartNanos+iv.LengthNanos/2, func(s *stair, at int64) int { return cmp.Compare(s.toNanos, at) })
	if at == len(c.stairs) {
		return
	}
	s := c.stairs[at]
	if iv.StartNanos < s.fromNanos-edgeNanos || iv.EndNanos() > s.toNanos+edgeNanos {
		return
	}
	key := streamKey{load, iv.VM}
	one := s.streams[key]
	if one == nil {
		key.load.Workload, key.vm = strings.Clone(iv.Workload), strings.Clone(iv.VM)
		one = &stream{}
		s.streams[key] = one
	}
	for d := range iv.Directions {
		one.operations += iv.Directions[d].Operations
	}
	one.nanos += iv.LengthNanos
	s.times.Add(iv)
}

// step is the result of a stair; false if no worker ran through most of it.
func (s *stair) step() (result.ScalingStep, bool) {
	out := result.ScalingStep{FromNanos: s.fromNanos, ToNanos: s.toNanos}
	throughput := 0.0
	for _, one := range s.streams {
		if 2*one.nanos >= s.toNanos-s.fromNanos {
			out.Workers++
			throughput += float64(one.operations) / time.Duration(one.nanos).Seconds()
		}
	}
	out.Throughput = result.Number(throughput)
	times := s.times.Statistics("service") // of a closed loop both are the same
	out.Mean, out.Median, out.P99 = times.Mean, times.Median, times.P99
	return out, out.Workers > 0
}

// Scaling analyzes the staircase with the most steps; nil if there is none.
func Scaling(list []*Staircase, t *analysis.Timeline, p *plan.Plan, engines map[string]interval.Engine) *result.Scaling {
	var best *result.Scaling
	different := stairsMin - 1
	for _, c := range list {
		one := &result.Scaling{Notes: []string{}}
		numbers := map[int]bool{}
		for _, s := range c.stairs {
			if step, ok := s.step(); ok {
				one.Steps = append(one.Steps, step)
				numbers[step.Workers] = true
			}
		}
		if len(numbers) <= different {
			continue
		}
		for _, s := range t.Starts {
			if c.loads[analysis.Start{Workload: s.Workload, Instance: s.Instance}] && !slices.Contains(one.Workloads, s.Workload) {
				one.Workloads = append(one.Workloads, s.Workload)
			}
		}
		best, different = one, len(numbers)
	}
	if best != nil {
		w, _ := p.Workload(best.Workloads[0])
		best.Worker = "one VM that runs " + cmp.Or(w.ConfigFile, w.Generator)
		best.Unit = engines[best.Workloads[0]].RateUnit()
		fitScaling(best)
	}
	return best
}

// fitScaling fits the steps.
func fitScaling(s *result.Scaling) {
	var points []scaling.Point
	for _, step := range s.Steps {
		points = append(points, scaling.Point{Workers: float64(step.Workers), Throughput: float64(step.Throughput)})
	}
	a := scaling.Analyze(points)
	names := scaling.Names{Workers: "workers", Throughput: func(v float64) string { return unit.FormatCount(v) + " " + s.Unit }}
	s.Sentence, s.Density, s.Answered = a.Sentence(names), a.Density(names), a.Answered()
	for i, n := range slices.Concat(a.Refused, a.Notes) {
		if i > 0 || len(a.Refused) == 0 { // the sentence has the first reason
			s.Notes = append(s.Notes, n.Text)
		}
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		step.Fitted, step.Share = result.Number(math.NaN()), result.Number(math.NaN())
		at := slices.IndexFunc(a.Rows, func(r scaling.Row) bool { return r.Workers == float64(step.Workers) })
		if a.Single > 0 && at >= 0 {
			step.Share = step.Throughput / result.Number(a.Single*a.Rows[at].Workers)
		}
		if a.Fit != nil && at >= 0 {
			step.Fitted = result.Number(a.Rows[at].Fitted)
		}
	}
	if a.Fit == nil {
		return
	}
	f := a.Fit
	s.Fit = &result.ScalingFit{
		Model: string(f.Model), Lambda: estimated(f.Lambda), Sigma: estimated(f.Sigma), Kappa: estimated(f.Kappa), R2: result.Number(f.R2),
		Peak: optional(f.Peak), PeakThroughput: optional(f.PeakThroughput), Limit: optional(f.Limit),
	}
	for _, p := range f.Curve {
		e := estimated(p.Throughput)
		e.Workers = result.Number(p.Workers)
		s.Fit.Curve = append(s.Fit.Curve, e)
	}
}

func estimated(e scaling.Estimate) result.ScalingEstimate {
	return result.ScalingEstimate{Value: result.Number(e.Value), Low: result.Number(e.Low), High: result.Number(e.High)}
}

func optional(e *scaling.Estimate) *result.ScalingEstimate {
	if e == nil {
		return nil
	}
	out := estimated(*e)
	return &out
}
