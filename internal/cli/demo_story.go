package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// demoStory finds the data of the demo's four answers in the summary of its run. Every figure is also in the report.
type demoStory struct {
	summary *result.Summary
	// The two starts of the database, before the kill and after it, and the neighbor; nil if the run did not get that far.
	before, after, beside *result.LoadSummary
}

func readDemo(s *result.Summary) *demoStory {
	story := &demoStory{summary: s}
	for i := range s.Loads {
		l := &s.Loads[i]
		switch {
		case l.Prefill:
		case l.Workload == demoNeighbor:
			story.beside = l
		case l.Workload == demoDatabase && story.before == nil:
			story.before = l
		case l.Workload == demoDatabase:
			story.after = l
		}
	}
	return story
}

const demoNotReached = "not measured: the run ended earlier"

// window returns the window that contains a time on the run's axis.
func (d *demoStory) window(at int64) *result.Window {
	for i, w := range d.summary.Windows {
		if w.FromNanos <= at && at < w.ToNanos {
			return &d.summary.Windows[i]
		}
	}
	return nil
}

// stats returns the statistics of a result of a workload in a window.
func (d *demoStory) stats(kind, timeKind string, w *result.Window) *result.Stats {
	if w == nil {
		return nil
	}
	r := d.result(kind)
	if r == nil {
		return nil
	}
	for i := range r.Stats {
		if s := &r.Stats[i]; s.Window == w.Name && s.Kind == timeKind && s.Count > 0 {
			return s
		}
	}
	return nil
}

// result returns the database's result of a type.
func (d *demoStory) result(kind string) *result.Evaluated {
	for i := range d.summary.Results {
		if r := &d.summary.Results[i]; r.Type == kind && strings.HasPrefix(r.Name, demoDatabase) {
			return r
		}
	}
	return nil
}

// quiet is the window of the database alone, loud the one beside the neighbor.
func (d *demoStory) quiet() *result.Window {
	if d.before == nil || d.beside == nil {
		return nil
	}
	return d.window(d.beside.FromNanos - int64(2*time.Second))
}

func (d *demoStory) loud() *result.Window {
	if d.beside == nil {
		return nil
	}
	return d.window((d.beside.FromNanos + d.beside.ToNanos) / 2)
}

func (d *demoStory) baseline() string {
	w := d.quiet()
	latency, iops := d.stats("latency", "response", w), d.stats("iops", "", w)
	if latency == nil || iops == nil {
		return demoNotReached
	}
	return fmt.Sprintf("%s IOPS; response time p50 %s, p99 %s (%s, %s operations)", unit.FormatCount(float64(iops.Mean)),
		latencyText(latency.Median), latencyText(latency.P99), lasted(w), unit.FormatCount(float64(latency.Count)))
}

func (d *demoStory) neighbor() string {
	quiet, loud := d.stats("latency", "response", d.quiet()), d.stats("latency", "response", d.loud())
	iops := d.stats("iops", "", d.loud())
	if quiet == nil || loud == nil || iops == nil {
		return demoNotReached
	}
	read := float64(d.beside.Total.Bytes) / time.Duration(d.beside.ToNanos-d.beside.FromNanos).Seconds()
	return fmt.Sprintf("p50 %s → %s (%s), p99 %s → %s (%s), %s IOPS, while the neighbor read %s (%s)",
		latencyText(quiet.Median), latencyText(loud.Median), ratio(loud.Median, quiet.Median),
		latencyText(quiet.P99), latencyText(loud.P99), ratio(loud.P99, quiet.P99),
		unit.FormatCount(float64(iops.Mean)), unit.FormatRate(read), lasted(d.loud()))
}

// outage is the time from the step that killed the VM to the first interval with I/O afterwards. The scenario keeps the VM off
// for part of it; that part is mentioned.
func (d *demoStory) outage() string {
	if d.before == nil || d.after == nil {
		return demoNotReached
	}
	off := d.window(d.after.FromNanos)
	for i, w := range d.summary.Windows {
		if w.FromNanos >= d.before.ToNanos-int64(time.Second) && w.FromNanos < d.after.FromNanos {
			off = &d.summary.Windows[i]
			break
		}
	}
	if off == nil || off.FromNanos > d.after.FromNanos {
		return demoNotReached
	}
	text := fmt.Sprintf("VM killed at %s: no I/O for %s, %s of it before the scenario started the VM again",
		unit.FormatDuration(time.Duration(off.FromNanos).Round(100*time.Millisecond)),
		tenths(d.after.FromNanos-off.FromNanos), tenths(off.ToNanos-off.FromNanos))
	if took, ok := d.recovered(); ok {
		return text + fmt.Sprintf("; response time back at baseline %s after the restart", tenths(took))
	}
	return text + "; response time not back at baseline within " + tenths(d.after.ToNanos-d.after.FromNanos)
}

// demoRecoveredSeconds is how many seconds in a row must be as good as the baseline.
const demoRecoveredSeconds = 3

// recovered is when, after the restart, the mean response time of a second was no higher than the highest of the baseline,
// for three seconds in a row.
func (d *demoStory) recovered() (tookNanos int64, ok bool) {
	r, w := d.result("latency"), d.quiet()
	if r == nil || w == nil {
		return 0, false
	}
	at := slices.IndexFunc(r.Series, func(s result.Series) bool { return s.Kind == "response" && s.Statistic == "mean" })
	if at < 0 {
		return 0, false
	}
	high, row := math.Inf(-1), 0
	for _, p := range r.Series[at].Points {
		nanos := int64(p.Seconds * 1e9)
		switch {
		case nanos >= w.FromNanos && nanos < w.ToNanos && !math.IsNaN(p.Value):
			high = max(high, p.Value)
		case nanos < d.after.FromNanos:
		case p.Value <= high:
			if row++; row == demoRecoveredSeconds {
				return max(0, nanos-int64((demoRecoveredSeconds-1)*time.Second)-d.after.FromNanos), true
			}
		default:
			row = 0
		}
	}
	return 0, false
}

// validity is the run's two verdicts: those of its thresholds and of its numbers.
func (d *demoStory) validity() string {
	s := d.summary
	if s.Validity == result.Valid {
		return fmt.Sprintf("%s, valid: %s %s", s.Verdict, s.Reason, s.ValidityReason)
	}
	return result.Headline(s.Verdict, s.Validity) + ": " + s.ValidityReason
}

func latencyText(n result.Number) string { return unit.FormatLatency(float64(n)) }

func lasted(w *result.Window) string {
	return unit.FormatDuration(time.Duration(w.ToNanos - w.FromNanos).Round(time.Second))
}

func tenths(nanos int64) string { return fmt.Sprintf("%.1f s", float64(nanos)/1e9) }

func ratio(now, was result.Number) string { return fmt.Sprintf("%.1f×", float64(now)/float64(was)) }
