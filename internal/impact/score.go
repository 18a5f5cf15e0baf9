package impact

import (
	"fmt"
	"math"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/result"
)

// backHold is how many seconds a rate must be observed after its return to the baseline.
const backHold = 5

// score compares several VMs of a load with their baseline; nil without any. scores is how many such scores share the chance of a
// false claim.
func (x *exposure) score(r *rates, vms []string, scores int) *result.ImpactScore {
	if len(vms) == 0 {
		return nil
	}
	s := &result.ImpactScore{Count: len(vms), Stall: x.stallOf(vms), FirstIONanos: x.firstIO(vms), Lost: x.lostOf(vms), Latency: x.latencyOf(vms)}
	for _, vm := range vms {
		if !x.taken[vm] && x.gone(vm) {
			s.Vanished++
		}
		if v := r.vms[vm]; v != nil {
			s.MissingSeconds += v.missing
		}
	}
	s.Baseline = result.ImpactBaseline{FromNanos: x.baseline.FromNanos, ToNanos: x.baseline.ToNanos}
	if s.Unknown = x.rate(s, r, r.measured(vms), scores); s.Unknown != "" {
		unknown := result.Number(math.NaN())
		s.Level, s.Baseline.Mean, s.Baseline.CV, s.Baseline.Correlation = unknown, unknown, unknown, unknown
		s.Dip = result.ImpactDip{Depth: unknown, Lowest: unknown, Mean: unknown, Detectable: unknown, DetectableSecond: unknown}
		s.Within5, s.Within10 = result.ImpactBack{Unknown: s.Unknown}, result.ImpactBack{Unknown: s.Unknown}
		s.Lost.Operations, s.Lost.UncertainOperations = unknown, unknown
	}
	return s
}

// rate fills in what the seconds say, and returns why they say nothing.
func (x *exposure) rate(s *result.ImpactScore, r *rates, vms []string, scores int) (unknown string) {
	if x.baseline.ToNanos == 0 || r.base.To <= r.base.From {
		return fmt.Sprintf("less than %d s of load without another event before it", baselineMin/second)
	}
	base, look := r.course(vms, func(v *vmRates) *pair { return &v.chosen })
	for len(look) > 0 && math.IsNaN(look[len(look)-1]) {
		look = look[:len(look)-1]
	}
	n := newNoise(base, scores, r.grain)
	idle := len(vms) > 0
	for _, vm := range vms {
		idle = idle && r.vms[vm].operations.mean == 0
	}
	switch {
	case idle:
		return "the load completed nothing before the event"
	case len(vms) == 0 || int64(n.seconds)*second < baselineMin/2:
		return "too few seconds of the baseline have data"
	case len(look) == 0:
		return "the load ended with the event"
	}
	c := newCourse(look, n)
	c.near = r.near
	s.Baseline.Seconds, s.Baseline.Mean = n.seconds, result.Number(n.mean)
	s.Baseline.CV, s.Baseline.Correlation = result.Number(n.deviation/n.mean), result.Number(n.correlation)
	s.Level = result.Number(c.mean(0, len(look)))
	if math.IsNaN(float64(s.Level)) {
		return "most seconds after the event have no data"
	}
	s.Dip = dipOf(c, r)
	s.Within5, s.Within10 = x.back(c, r, 0.05, &s.Dip), x.back(c, r, 0.10, &s.Dip)
	lost(&s.Lost, r, vms, len(look))
	return ""
}

// dipOf describes the dip of a course.
func dipOf(c *course, r *rates) (d result.ImpactDip) {
	n, looked := c.noise, len(c.values)
	d.DetectableSecond = result.Number(n.detectable(1, looked))
	d.Detectable = result.Number(n.detectable(min(10, looked), looked))
	at, length := c.dip()
	unknown := result.Number(math.NaN())
	if d.Lowest, d.Mean, d.Then = unknown, unknown, unknown; length == 0 {
		return d
	}
	depth := 1 - c.mean(at, at+length)/n.mean
	bound := n.mean * (1 - min(0.05, depth/2))
	first, last := at, at+length // of the stretch, whose mean is below the bound
	for !(c.values[first] < bound) {
		first++
	}
	for !(c.values[last-1] < bound) {
		last--
	}
	begin, end := c.begin(bound, first), max(c.end(bound), last)
	if lowest, w := c.deepest(begin, end, func(i, w int, limit float64) bool { return c.mean(i, i+w) < n.mean-limit }); w > 0 {
		at, length = lowest, w
	}
	lowest := c.mean(at, at+length)
	d.Seen, d.Depth, d.OverSeconds, d.Lowest = true, result.Number(1-lowest/n.mean), length, result.Number(lowest)
	d.AtNanos, d.FromNanos, d.ToNanos = r.at(at), r.at(begin), r.at(end)
	d.Mean, d.Then = result.Number(c.mean(begin, end)), result.Number(c.mean(end, looked))
	sum := 0.0
	for _, v := range c.values[begin:end] {
		if v < bound {
			d.Seconds, sum = d.Seconds+1, sum+v
		}
	}
	if d.Seconds > 0 && 2*d.Seconds < end-begin {
		d.Mean = result.Number(sum / float64(d.Seconds))
	}
	if rest := looked - end; rest > 0 {
		d.StaysBelow = float64(d.Then) < n.mean-n.limit(rest, looked)
	}
	return d
}

// at is the start of a second from the event on.
func (r *rates) at(i int) int64 {
	return r.grid.OriginNanos + int64(r.look.From+i)*int64(analysis.CellLength)
}

// back is when a course was back within a share of its baseline and stayed there.
func (x *exposure) back(c *course, r *rates, share float64, d *result.ImpactDip) result.ImpactBack {
	end := c.end(c.noise.mean * (1 - share))
	since := int64(0)
	if end == 0 && d.Seen && float64(d.Depth) > share {
		end = int((d.ToNanos - r.at(0)) / second)
	}
	if end > 0 {
		since = max(0, r.at(end)-x.fromNanos)
	}
	switch {
	case len(c.values) < backHold:
		return result.ImpactBack{AtLeastNanos: since, Unknown: fmt.Sprintf("observed for less than %d s", backHold)}
	case end == 0 && !d.Seen && float64(d.Detectable) > share:
		return result.ImpactBack{Unknown: fmt.Sprintf("a dip of %.0f %% would not have been seen", 100*share)}
	case end > 0 && len(c.values)-end < backHold:
		return result.ImpactBack{AtLeastNanos: since,
			Unknown: fmt.Sprintf("not back for %d s before the load ended or the next event began", backHold)}
	}
	return result.ImpactBack{Nanos: &since, AtLeastNanos: since}
}

// lost adds up the operations that were not done until the last second below the baseline beyond chance, and those made up for
// directly after it. Without a dip, the uncertainty is what would not have been seen.
func lost(l *result.ImpactLost, r *rates, vms []string, looked int) {
	base, look := r.course(vms, func(v *vmRates) *pair { return &v.operations })
	n := newNoise(base, 1, 1)
	c := newCourse(look[:looked], n)
	c.near = r.near
	end := c.end(n.mean)
	if end == 0 {
		l.UncertainOperations = result.Number(float64(looked) * n.limit(looked, looked))
		return
	}
	for end < looked && look[end] > n.mean+n.limit(1, looked) {
		end++
	}
	known := c.counts[end]
	l.Operations = result.Number(float64(known)*n.mean - c.sums[end])
	l.UncertainOperations = result.Number(1.96 * float64(known) * n.ofDifference(known))
}
