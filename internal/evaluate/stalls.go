package evaluate

import (
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
)

// Names of statistics of stalls.
const (
	longestStall  = "longest_stall"
	secondsAtZero = "seconds_at_zero"
)

// addStalls gives the rows of traffic the stalls of their series.
func (e *sheet) addStalls(r *shown, all *analysis.Stalls) {
	traffic := r.Source == scenario.FromGroup || r.Source == scenario.FromWorkload
	if !traffic || !slices.Contains([]string{"iops", "bandwidth", "latency"}, e.Type) {
		return
	}
	keep, _ := choose(r.Result)
	silences := map[string]*analysis.Silence{}
	windows := append(result.Clip(e.windows, e.window()), e.window())
	for i := range e.Stats {
		row := &e.Stats[i]
		vm := row.Series
		if r.Aggregate != "" {
			vm = ""
		}
		if _, known := silences[vm]; !known {
			silences[vm] = all.Of(vm, keep)
		}
		at := slices.IndexFunc(windows, func(w result.Window) bool { return w.Name == row.Window })
		row.Stall = silences[vm].In(windows[at].FromNanos, windows[at].ToNanos)
	}
}

// stalls returns the requested statistic of stalls of every series, in seconds.
func stalls(x scenario.Threshold, e *result.Evaluated) (values []measured, reason string) {
	if e.Missing != "" {
		return nil, e.Missing
	}
	for _, s := range e.Stats {
		if s.Window != x.Window {
			continue
		}
		if s.Stall == nil && s.Count == 0 {
			return nil, fmt.Sprintf("no data in window %q", x.Window)
		}
		if s.Stall == nil {
			return nil, "the generator does not record when single operations completed, or the result is not of operations"
		}
		shortest := time.Duration(s.Stall.ShortestNanos)
		m := measured{value: time.Duration(s.Stall.LongestNanos).Seconds()}
		switch low, _ := compare(0, x.Operator, x.Value); {
		case x.Statistic == secondsAtZero:
			m.value = float64(s.Stall.ZeroSeconds)
		case s.Stall.LongestNanos == 0:
			m.value = shortest.Seconds()
			if high, _ := compare(m.value, x.Operator, x.Value); low != high {
				m.unknown = fmt.Sprintf("stalls shorter than %s are not recorded", shortest)
			}
		}
		values = append(values, m)
	}
	if len(values) == 0 {
		return nil, fmt.Sprintf("no data in window %q", x.Window)
	}
	return values, ""
}
