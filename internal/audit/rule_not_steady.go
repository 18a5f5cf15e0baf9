package audit

import (
	"fmt"
	"math"

	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// steadySeconds is the shortest window that is checked.
	steadySeconds = 20
	// driftNoticed is a change along the fitted line, as a share of the mean, and driftSure how many standard errors
	// the slope must be away from zero.
	driftNoticed = 0.10
	driftSure    = 4.0
	// scatterNoticed is a coefficient of variation.
	scatterNoticed = 0.30
	// swingNoticed is how far parts of a window differ, as a share of its mean.
	swingNoticed = 0.20
	// latencyFactor: means of latency over a second scatter more than rates, so more of each is tolerated.
	latencyFactor = 2.5
)

var notSteady = Rule{
	Code:    "not-steady",
	Summary: "a workload was not steady within a window",
	Doc: "IOPS within a window between two steps drift (the fitted line rises or falls by more than 10 %, beyond four " +
		"standard errors), swing (stretches of the window lie more than 20 % apart, beyond eight standard errors), or scatter by " +
		"more than 30 % of their mean; or response time drifts by more than 25 % or swings by more than 50 %, which it does under a " +
		"rate while IOPS stay. The mean of such a window depends on its length. Windows shorter than 20 s are not checked. Twice as " +
		"much in the IOPS of a window before the first event is a warning.",
	Example: `OLTP was not steady before nodes.PowerOff: its IOPS rose by 34 % over 4 m.`,
	Check:   checkNotSteady,
}

func checkNotSteady(in *Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range measured(in) {
		p := in.Digest.Profile(l.Workload, l.Instance)
		var worst *finding.Finding
		worstDegree := 0.0
		for _, w := range windowsOf(in, l) {
			rates, latencies := p.Over(w.FromNanos, w.ToNanos)
			for _, c := range []course{{l.Engine().RateUnit(), rates, 1}, {"mean response time", latencies, latencyFactor}} {
				if float64(len(c.values))*p.Seconds() < steadySeconds {
					continue
				}
				if text, degree := c.unsteadiness(w); degree > worstDegree {
					worstDegree = degree
					worst = &finding.Finding{Severity: unsteadySeverity(l, w, c, degree), Subject: l.Workload, FromNanos: w.FromNanos, ToNanos: w.ToNanos,
						Claim: fmt.Sprintf("%s was not steady %s: %s.", in.name(l), windowName(w), text)}
				}
			}
		}
		if worst != nil {
			list = append(list, *worst)
		}
	}
	return list
}

// unsteadySeverity: a rate that changes by twice what is tolerated makes the mean of a baseline a number of its length alone. After an
// event a change is what the run was made to show.
func unsteadySeverity(l *result.LoadSummary, w result.Window, c course, degree float64) finding.Severity {
	if c.tolerant == 1 && degree >= 2 && (w.Before == "" || w.Before == l.Workload) {
		return finding.Warning
	}
	return finding.Info
}

// windowsOf divides the time of l by the windows of the run; a load outside all windows is one window.
func windowsOf(in *Input, l *result.LoadSummary) []result.Window {
	var list []result.Window
	for _, w := range in.Summary.Windows {
		w.FromNanos, w.ToNanos = max(w.FromNanos, l.FromNanos), min(w.ToNanos, l.ToNanos)
		if w.ToNanos > w.FromNanos {
			list = append(list, w)
		}
	}
	if list == nil {
		list = []result.Window{{FromNanos: l.FromNanos, ToNanos: l.ToNanos}}
	}
	return list
}

func windowName(w result.Window) string {
	if w.Name == "" || w.Name == "run" { // the whole run phase
		return fmt.Sprintf("from %s to %s", unit.FormatClock(w.FromNanos), unit.FormatClock(w.ToNanos))
	}
	return w.Name
}

// course has the values of each second of a window, and how much more change is tolerated in them than in a rate.
type course struct {
	what     string // "IOPS"
	values   []float64
	tolerant float64
}

// unsteadiness describes what is not steady, and the degree as a multiple of the tolerance; degree 0 is steady.
func (c *course) unsteadiness(w result.Window) (text string, degree float64) {
	tr := digest.Fit(c.values)
	if !(tr.Mean > 0) {
		return "", 0
	}
	if drift := math.Abs(tr.Drift); drift >= c.tolerant*driftNoticed && math.Abs(tr.T) >= driftSure {
		verb := "rose"
		if tr.Drift < 0 {
			verb = "fell"
		}
		return fmt.Sprintf("its %s %s by %s over %s", c.what, verb, percent(drift), span(w.ToNanos-w.FromNanos)), drift / driftNoticed / c.tolerant
	}
	if apart := digest.Swing(c.values); apart >= c.tolerant*swingNoticed {
		return fmt.Sprintf("its %s in stretches of it lie %s of the mean apart", c.what, percent(apart)), apart / swingNoticed / c.tolerant
	}
	if tr.CV >= scatterNoticed && c.tolerant == 1 {
		return fmt.Sprintf("its %s scatter by %s around their mean", c.what, percent(tr.CV)), tr.CV / scatterNoticed
	}
	return "", 0
}

// percent prints a share in whole percent.
func percent(share float64) string { return unit.FormatPercent(math.Round(share*100) / 100) }
