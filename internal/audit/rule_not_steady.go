package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/steady"
	"github.com/braggdev/bragg/internal/unit"
)

// unsteadyWarned is how many times the limit a rate before the first event must be found to be a warning.
const unsteadyWarned = 2

var notSteady = rule.Rule{
	Code:    "not-steady",
	Summary: "a workload was not steady within a window",
	Doc: "IOPS, median or p99 of response time of all VMs together were not steady between two steps, by SNIA's rule (the means of five " +
		"rounds differ by more than 20 % of their mean, or the line through them by more than 10 %), because levels between changes " +
		"differ by more than 20 %, or because IOPS scatter by more than 30 % of their mean. For response times the limits are 2.5 times " +
		"as large. What noise explains is not reported. The numbers of such a window depend on its length. Windows with fewer than " +
		"20 values are not checked. Twice the limit in the IOPS of a window before the first event is a warning.",
	Example: `OLTP was not steady before nodes.PowerOff: its IOPS rose by 34 % over 4 m (limit 10 %).`,
	Check:   checkNotSteady,
}

func checkNotSteady(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		c := in.Digest.Course(l.Workload, l.Instance)
		var worst *finding.Finding
		worstDegree := 0.0
		for _, w := range windowsOf(in, l) {
			v := steady.Judge(c.Over(w.FromNanos, w.ToNanos, l.Engine().RateUnit()).Series...)
			if v.State != steady.Unsteady || v.Reasons[0].Degree() <= worstDegree {
				continue
			}
			why := v.Reasons[0]
			worstDegree = why.Degree()
			worst = &finding.Finding{Severity: unsteadySeverity(l, w, why), Subject: l.Workload, FromNanos: w.FromNanos, ToNanos: w.ToNanos,
				Claim: fmt.Sprintf("%s was not steady %s: %s over %s %s.", in.Name(l), windowName(w), why.String(), rule.Span(w.ToNanos-w.FromNanos), why.Bound())}
			for _, r := range v.Reasons[1:] {
				worst.Evidence = append(worst.Evidence, r.String()+" "+r.Bound())
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
func unsteadySeverity(l *result.LoadSummary, w result.Window, why steady.Reason) finding.Severity {
	if !why.Latency && why.Degree() >= unsteadyWarned && (w.Before == "" || w.Before == l.Workload) {
		return finding.Warning
	}
	return finding.Info
}

// windowsOf divides the time of l, without a warm-up that is left out, by the windows of the run; a load outside all windows is one
// window.
func windowsOf(in *rule.Input, l *result.LoadSummary) []result.Window {
	all := result.Window{FromNanos: l.FromNanos, ToNanos: l.ToNanos}
	if w, _ := in.Summary.WarmUp(l); w != nil {
		all.FromNanos = max(all.FromNanos, w.ToNanos)
	}
	if list := result.Clip(in.Summary.Windows, all); list != nil {
		return list
	}
	return []result.Window{all}
}

func windowName(w result.Window) string {
	if w.Name == "" || w.Name == "run" { // the whole run phase
		return fmt.Sprintf("from %s to %s", unit.FormatClock(w.FromNanos), unit.FormatClock(w.ToNanos))
	}
	return w.Name
}
