package audit

import (
	"math"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/steady"
	"github.com/braggdev/bragg/internal/unit"
)

// warmUpNoticed is how far the rate of a warm-up must be from that of the rest, and warmUpShare how much of the load it is at most.
const (
	warmUpNoticed = 0.2
	warmUpShare   = 0.25
)

var warmUpIncluded = rule.Rule{
	Code:    "warm-up-included",
	Summary: "the start of a workload differs from the rest of it",
	Doc: "Up to the first event, the load is steady after a warm-up of at most a quarter of that time, whose rate differs by more than 20 % from that of " +
		"the rest. Caches, queues and mappings were filling, or a write buffer was still empty. Means and percentiles include that start.",
	Example: `randread: IOPS of its first 6 s lie 45 % below those of the rest; its mean includes that start.`,
	Check:   checkWarmUpIncluded,
}

func checkWarmUpIncluded(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		if w, _ := in.Summary.WarmUp(l); w != nil {
			continue // other rules report it
		}
		c := in.Digest.Course(l.Workload, l.Instance)
		first := windowsOf(in, l)[0] // what an event does to a load is not a warm-up
		rates := c.Over(first.FromNanos, first.ToNanos, "").Known()
		v := steady.WarmUp(steady.Series{Values: rates})
		n := v.WarmUp
		apart := stat.Mean(rates[:n])/stat.Mean(rates[n:]) - 1
		if v.State != steady.Steady || !(math.Abs(apart) > warmUpNoticed) || float64(n) > warmUpShare*float64(len(rates)) {
			continue
		}
		where := map[bool]string{true: "above", false: "below"}[apart > 0]
		list = append(list, in.About(l, finding.Info, "Let the result leave it out (warmup: auto), set ramp_time in the job file, or start a warm-up workload in setup.",
			"%s: %s of its first %s lie %s %s those of the rest; its mean includes that start.", in.Name(l), l.Engine().RateUnit(),
			rule.Span(int64(n)*c.Width()), unit.FormatWholePercent(math.Abs(apart)), where))
	}
	return list
}
