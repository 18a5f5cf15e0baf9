package evaluate

import (
	"context"

	"github.com/braggdev/bragg/internal/evaluate/counted"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
)

// sourceResults returns the charts of what the storage counted. A chart without data is left out: no scenario requested it, and a source
// that did not answer is a finding.
func sourceResults(ctx context.Context, ev *evaluator) []result.Evaluated {
	var all []result.Evaluated
	for _, c := range counted.Charts(&ev.manifest, ev.sources) {
		e := sheet{windows: ev.windows, lookback: int64(c.Lookback), strict: true, Evaluated: c.Result(ev.sources, ev.phase)}
		if ev.in.Metrics == nil || ev.phase.ToNanos <= ev.phase.FromNanos {
			return nil
		}
		if ev.ask(ctx, scenario.Result{}, &e, c.Query); e.Missing == "" {
			all = append(all, e.Evaluated)
		}
	}
	return all
}
