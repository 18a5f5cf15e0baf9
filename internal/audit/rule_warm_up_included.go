package audit

import (
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"

	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// warmUpShare of a load is compared with the rest; it has to differ by warmUpNoticed of its mean, beyond warmUpSure standard errors.
	warmUpShare   = 0.1
	warmUpNoticed = 0.2
	warmUpSure    = 4.0
	// warmUpDrift of the rest is too much: the load has no start that differs.
	warmUpDrift = 0.1
	// warmUpValuesMin: a tenth of fewer values does not show a start.
	warmUpValuesMin = 30
)

var warmUpIncluded = rule.Rule{
	Code:    "warm-up-included",
	Summary: "the start of a workload differs from the rest of it",
	Doc: "The first tenth of the load has a rate that differs by more than 20 % from the mean of the rest, beyond four standard " +
		"errors, while the rest does not drift by more than 10 %. Caches, queues and mappings were filling, or a write buffer " +
		"was still empty. Means and percentiles of the whole load include that start.",
	Example: `randread: IOPS of its first 6 s lie 45 % below those of the rest; its mean includes that start.`,
	Check:   checkWarmUpIncluded,
}

func checkWarmUpIncluded(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		c := in.Digest.Course(l.Workload, l.Instance)
		rates := slices.DeleteFunc(c.Over(l.FromNanos, l.ToNanos, "").Series[0].Values, math.IsNaN)
		if len(rates) < warmUpValuesMin {
			continue
		}
		n := int(math.Ceil(warmUpShare * float64(len(rates))))
		head, rest := digest.Fit(rates[:max(3, n)]), digest.Fit(rates[max(3, n):])
		apart := (head.Mean - rest.Mean) / rest.Mean
		noise := rest.CV / math.Sqrt(float64(max(3, n)))
		if !(math.Abs(apart) > warmUpNoticed) || math.Abs(apart) < warmUpSure*noise || math.Abs(rest.Drift) > warmUpDrift {
			continue
		}
		where := "below"
		if apart > 0 {
			where = "above"
		}
		list = append(list, in.About(l, finding.Info, "Set ramp_time in the job file, or start a warm-up workload in the setup phase.",
			"%s: %s of its first %s lie %s %s those of the rest; its mean includes that start.", in.Name(l), l.Engine().RateUnit(),
			rule.Span(int64(float64(max(3, n))*float64(c.Width()))), unit.FormatWholePercent(math.Abs(apart)), where))
	}
	return list
}
