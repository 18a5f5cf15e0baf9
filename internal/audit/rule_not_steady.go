package audit

import (
	"fmt"
	"math"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// steadySeconds is the shortest window worth a judgement.
	steadySeconds = 20
	// driftNoticed is a change along the fitted line, as a share of the mean, and driftSure how many standard errors
	// the slope must be away from zero.
	driftNoticed = 0.10
	driftSure    = 4.0
	// scatterNoticed is a coefficient of variation.
	scatterNoticed = 0.30
)

var notSteady = Rule{
	Code:    "not-steady",
	Summary: "a workload was not steady within a window",
	Doc: "IOPS within a window between two steps drift (the fitted line rises or falls by more than 10 %, beyond four " +
		"standard errors), or scatter by more than 30 % of their mean. The mean of such a window depends on its length. " +
		"Windows shorter than 20 s are not checked.",
	Example: `OLTP was not steady before nodes.PowerOff: its IOPS rose by 34 % over 4 m.`,
	Check:   checkNotSteady,
}

func checkNotSteady(in *Input) []finding.Finding {
	if in.Digest == nil {
		return nil
	}
	var list []finding.Finding
	for _, l := range measured(in) {
		p := in.Digest.loads[loadKey{l.Workload, l.Instance}]
		var worst *finding.Finding
		worstDegree := 0.0
		for _, w := range windowsOf(in, l) {
			values := p.rates(w.FromNanos, w.ToNanos)
			if p == nil || float64(len(values))*float64(p.width)/1e9 < steadySeconds {
				continue
			}
			if text, degree := unsteadiness(l.Engine().RateUnit(), fit(values), w); degree > worstDegree {
				worstDegree = degree
				worst = &finding.Finding{Severity: finding.Info, Subject: l.Workload, FromNanos: w.FromNanos, ToNanos: w.ToNanos,
					Claim: fmt.Sprintf("%s was not steady %s: %s.", in.name(l), windowName(w), text)}
			}
		}
		if worst != nil {
			list = append(list, *worst)
		}
	}
	return list
}

// windowsOf cuts the time of l at the windows of the run; a load outside of all windows is one window.
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
	if w.Name == "" {
		return fmt.Sprintf("from %s to %s", unit.FormatClock(w.FromNanos), unit.FormatClock(w.ToNanos))
	}
	return w.Name
}

// unsteadiness says what is not steady, and how much as a multiple of what is tolerated; degree 0 is steady.
func unsteadiness(rate string, tr trend, w result.Window) (text string, degree float64) {
	if !(tr.mean > 0) {
		return "", 0
	}
	if drift := math.Abs(tr.drift); drift >= driftNoticed && math.Abs(tr.t) >= driftSure {
		verb := "rose"
		if tr.drift < 0 {
			verb = "fell"
		}
		return fmt.Sprintf("its %s %s by %s over %s", rate, verb, unit.FormatPercent(math.Round(drift*100)/100), span(w.ToNanos-w.FromNanos)), drift / driftNoticed
	}
	if tr.cv >= scatterNoticed {
		return fmt.Sprintf("its %s scatter by %s around their mean", rate, unit.FormatPercent(math.Round(tr.cv*100)/100)), tr.cv / scatterNoticed
	}
	return "", 0
}
