package impact

import (
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// watch is what the intervals of one VM say about one event, beside its rates.
type watch struct {
	before, during, after analysis.Times
	base, look            counts
	stall                 result.ImpactStall
	silence               *analysis.Silence // nil if the generator does not record it
	pause                 int64             // the pause of the generator that may continue in the next interval
	paused                bool              // it filled the last one

	firstIO   int64 // start of the first interval with operations that began after the event, -1 for none
	seen      int64 // end of the last interval
	endedAt   int64 // of its last interval of all; 0 if it has none
	quietFrom int64 // end of the last interval with an operation, or of the last gap whose content is unknown
	length    int64 // of the previous interval
	waiting   uint64
}

// counts are operations that did not end well in a stretch.
type counts struct {
	nanos           int64
	failed, dropped uint64
}

// add takes an interval that overlaps the baseline or the time looked at.
func (x *exposure) add(iv *interval.Interval) {
	w := x.watch(iv.VM)
	end := iv.EndNanos()
	if iv.Final {
		w.endedAt = end
	}
	if end <= x.fromNanos {
		if iv.StartNanos >= x.baseline.FromNanos && end <= x.baseline.ToNanos {
			w.base.add(iv)
		}
		w.seen, w.quietFrom, w.length, w.waiting = end, end, iv.LengthNanos, iv.Backlog+iv.InFlight
		return
	}
	w.look.add(iv)
	w.follow(iv, x)
	w.seen, w.length, w.waiting = max(w.seen, end), iv.LengthNanos, iv.Backlog+iv.InFlight
}

func (x *exposure) watch(vm string) *watch {
	w := x.watches[vm]
	if w == nil {
		w = &watch{firstIO: -1}
		x.watches[strings.Clone(vm)] = w
	}
	return w
}

// times returns where the latencies of an interval belong, nil if nowhere.
func (x *exposure) times(iv *interval.Interval) *analysis.Times {
	end := iv.EndNanos()
	switch {
	case end <= x.baseline.FromNanos || iv.StartNanos >= x.untilNanos:
	case end <= x.fromNanos:
		if iv.StartNanos >= x.baseline.FromNanos && end <= x.baseline.ToNanos {
			return &x.watch(iv.VM).before
		}
	case iv.StartNanos < x.duringTo:
		return &x.watch(iv.VM).during
	case iv.StartNanos < x.duringTo+afterMax:
		return &x.watch(iv.VM).after
	}
	return nil
}

// eighthOf is the part of the baseline that an interval belongs to.
func (x *exposure) eighthOf(iv *interval.Interval) *analysis.Times {
	of := 0
	if x.taken[iv.VM] {
		of = 1
	}
	parts := &x.eighths[of]
	n := int64(len(parts))
	i := (iv.StartNanos + iv.LengthNanos/2 - x.baseline.FromNanos) * n / max(x.baseline.ToNanos-x.baseline.FromNanos, 1)
	return &parts[min(max(i, 0), n-1)]
}

// rangeOf is the range of the p99 of the eighths of a baseline.
func rangeOf(parts *[8]analysis.Times, kind string) *[2]result.Number {
	var all []float64
	for i := range parts {
		if s := parts[i].Statistics(kind); s.Count >= eighthMin && !s.AtLeast.Has("p99") {
			all = append(all, float64(s.P99))
		}
	}
	if len(all) < eighthsMin {
		return nil
	}
	return &[2]result.Number{result.Number(slices.Min(all)), result.Number(slices.Max(all))}
}

// eighthMin is how many operations an eighth of a baseline needs for a p99: five lie beyond it.
const eighthMin = 500

// eighthsMin is how many eighths are enough: intervals across the begin of a baseline are in none.
const eighthsMin = 5

func (c *counts) add(iv *interval.Interval) {
	c.nanos += iv.LengthNanos
	c.dropped += iv.NeverIssued()
	for d := range iv.Directions {
		c.failed += iv.Directions[d].ErrorCount()
	}
}

// excess is what a count of the time looked at has beyond the baseline's rate.
func excess(look, base uint64, lookNanos, baseNanos int64) uint64 {
	expected := 0.0
	if baseNanos > 0 {
		expected = float64(base) * float64(lookNanos) / float64(baseNanos)
	}
	return uint64(math.Round(max(0, float64(look)-expected)))
}

// follow tracks stretches without an operation for generators that record no gaps, and while a VM is away: whole intervals, joined, up
// to the interval in which the next operation completes. The slowest operation there bounds how much of both neighbors belongs to the
// stall, because in a queue that is never empty something waits through all of it.
func (w *watch) follow(iv *interval.Interval, x *exposure) {
	missing := w.seen == 0 || iv.StartNanos-w.seen > iv.LengthNanos/2
	if w.seen == 0 {
		w.quietFrom = iv.StartNanos
	} else if missing && !x.taken[iv.VM] {
		w.quietFrom, w.length = iv.StartNanos, 0
	}
	operations, slowest := uint64(0), uint64(0)
	for d := range iv.Directions {
		t := &iv.Directions[d]
		operations += t.Operations
		if t.Service != nil {
			slowest = max(slowest, t.Service.Max())
		} else if t.Operations > 0 && iv.StartNanos > w.quietFrom {
			slowest = math.MaxInt64 // latency is not measured
		}
	}
	w.joinPause(iv)
	if operations == 0 {
		return
	}
	gap := max(iv.StartNanos-w.quietFrom, 0)
	most := gap
	if slowest >= analysis.HungNanos {
		most = max(gap, min(int64(min(slowest, math.MaxInt64)), gap+w.length+iv.LengthNanos))
	}
	if gap > 0 || most > 0 {
		w.stalled(most, gap, w.quietFrom, iv.VM)
	}
	if w.firstIO < 0 && iv.StartNanos >= x.fromNanos {
		w.firstIO = iv.StartNanos
	}
	w.quietFrom = iv.EndNanos()
}

// joinPause adds up the time in which the generator itself did not run: a pause that fills an interval joins those of its neighbors.
func (w *watch) joinPause(iv *interval.Interval) {
	full := iv.StalledNanos >= 9*iv.LengthNanos/10
	if !w.paused && !full {
		w.pause = 0
	}
	w.pause += iv.StalledNanos
	if w.paused = full; iv.StalledNanos > 0 {
		w.stall.PausedNanos = max(w.stall.PausedNanos, w.pause)
		w.stalled(w.pause, w.pause, iv.EndNanos()-w.pause, iv.VM)
	} else {
		w.pause = 0
	}
}

func (w *watch) stalled(most, least, at int64, vm string) {
	if most > w.stall.Nanos {
		w.stall.Nanos, w.stall.AtNanos, w.stall.VM = most, at, strings.Clone(vm)
	}
	w.stall.AtLeastNanos = max(w.stall.AtLeastNanos, least)
}

// gone reports whether a VM delivered nothing more although its load continued or failed.
func (x *exposure) gone(vm string) bool {
	w := x.watches[vm]
	if w.endedAt > 0 && !x.failed[vm] {
		return false
	}
	return w.seen < x.untilNanos-2*second
}

// stallOf is the longest stall of several VMs. A VM that is gone is stalled to the end.
func (x *exposure) stallOf(vms []string) result.ImpactStall {
	var longest result.ImpactStall
	for _, vm := range vms {
		w := x.watches[vm]
		s := x.stallOn(vm)
		if quiet := x.untilNanos - max(w.quietFrom, x.baseline.ToNanos); x.gone(vm) && quiet >= s.Nanos {
			s.Nanos, s.AtLeastNanos, s.AtNanos, s.VM, s.Open = quiet, quiet, max(w.quietFrom, x.baseline.ToNanos), vm, true
		}
		least, pause := max(s.AtLeastNanos, longest.AtLeastNanos), max(s.PausedNanos, longest.PausedNanos)
		before := max(s.BaselineNanos, longest.BaselineNanos)
		if s.Nanos > longest.Nanos {
			longest = s
		}
		longest.AtLeastNanos, longest.PausedNanos, longest.BaselineNanos = least, pause, before
	}
	return longest
}

// stallOn is the longest stall of one VM, exact if the generator records gaps between completions.
func (x *exposure) stallOn(vm string) result.ImpactStall {
	w := x.watches[vm]
	s := w.stall
	exact := w.silence.In(x.fromNanos, x.untilNanos)
	if exact == nil {
		return s
	}
	s.Nanos = s.AtLeastNanos
	if exact.LongestNanos >= s.Nanos {
		s.Nanos, s.AtLeastNanos, s.AtNanos, s.VM = exact.LongestNanos, exact.LongestNanos, exact.AtNanos, vm
	}
	if before := w.silence.In(x.baseline.FromNanos, x.baseline.ToNanos); before != nil {
		s.BaselineNanos = before.LongestNanos
	}
	return s
}

// lostOf counts operations of several VMs that did not end well beyond what the baseline had.
func (x *exposure) lostOf(vms []string) (lost result.ImpactLost) {
	var base, look counts
	for _, vm := range vms {
		w := x.watches[vm]
		for sum, c := range map[*counts]*counts{&base: &w.base, &look: &w.look} {
			sum.nanos, sum.failed, sum.dropped = sum.nanos+c.nanos, sum.failed+c.failed, sum.dropped+c.dropped
		}
		if x.gone(vm) || x.taken[vm] && w.stall.AtLeastNanos >= 2*second {
			lost.InFlight += max(1, w.waiting)
		}
	}
	lost.Failed = excess(look.failed, base.failed, look.nanos, base.nanos)
	lost.Dropped = excess(look.dropped, base.dropped, look.nanos, base.nanos)
	return lost
}

// firstIO is the time from the event until the first of several VMs completed an operation. An interval that the event is in may have
// operations after it, so the time is no longer than the longest stall.
func (x *exposure) firstIO(vms []string) *int64 {
	var first *int64
	for _, vm := range vms {
		at := x.watches[vm].firstIO
		if at < 0 {
			continue
		}
		since := at - x.fromNanos
		if stall := x.stallOn(vm); !stall.Open {
			since = min(since, stall.Nanos)
		}
		if first == nil || since < *first {
			first = &since
		}
	}
	return first
}

// latencyOf merges the latencies of several VMs.
func (x *exposure) latencyOf(vms []string) result.ImpactLatency {
	var before, during, after analysis.Times
	for _, vm := range vms {
		w := x.watches[vm]
		before.Merge(&w.before)
		during.Merge(&w.during)
		after.Merge(&w.after)
	}
	all := []*analysis.Times{&before, &during, &after}
	l := result.ImpactLatency{Kind: "service"}
	if slices.ContainsFunc(all, func(t *analysis.Times) bool { return t.Response() != nil }) {
		l.Kind = "response"
	}
	digest := func(t *analysis.Times) *result.LatencyDigest {
		if t.Empty() {
			return nil
		}
		s := t.Statistics(l.Kind)
		return &result.LatencyDigest{Count: s.Count, Median: s.Median, P99: s.P99, Max: s.Max, AtLeast: append(result.Bounds{}, s.AtLeast...)}
	}
	l.Before, l.During, l.After = digest(&before), digest(&during), digest(&after)
	return l
}

// withRange adds how far the p99 of the baseline of all VMs that lived on, or of all that were taken, varies by itself.
func (x *exposure) withRange(s *result.ImpactScore, taken int) *result.ImpactScore {
	if s != nil && s.Latency.Before != nil {
		s.Latency.Before.Range = rangeOf(&x.eighths[taken], s.Latency.Kind)
	}
	return s
}
