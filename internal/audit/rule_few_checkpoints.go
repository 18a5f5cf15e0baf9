package audit

import (
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
)

// checkpointsLeast is how many intervals between checkpoints a load of a database has to hold: with fewer, the share of its time in which a
// checkpoint writes depends on when it began.
const checkpointsLeast = 2

var fewCheckpoints = rule.Rule{
	Code:    "few-checkpoints",
	Summary: "a load on a database was shorter than two of its checkpoint intervals",
	Doc: "A database writes changed pages to its data files later, at checkpoints. PostgreSQL starts one every checkpoint_timeout, 5 minutes " +
		"by default, or when its WAL has grown to max_wal_size. A load that is shorter than two intervals may have no checkpoint, and then leaves " +
		"out much of what its transactions cost, or a larger share of its time with one than longer loads have. Loads in which two " +
		"checkpoints or more began are not reported, nor are loads that only read, rehearsals and simulated databases.",
	Example: `oltp was measured for 2 m, less than two checkpoint intervals of its database (5 m each): 0 checkpoints began.`,
	Check:   checkFewCheckpoints,
}

func checkFewCheckpoints(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	if in.Manifest.Rehearsal != nil || in.Manifest.Target.Simulated {
		return nil
	}
	shortest := map[string]int64{} // by workload, whose shortest start is reported
	for _, l := range rule.Measured(in) {
		w, known := in.KnownPlan().Workload(l.Workload)
		every, from := l.Engine().CheckpointNanos, l.FromNanos
		if warm, _ := in.Summary.WarmUp(l); warm != nil {
			from = max(from, warm.ToNanos)
		}
		lasted := l.ToNanos - from
		began, counted := checkpointsOf(in, l)
		writes := known && w.Load != nil && slices.ContainsFunc(w.Load.Jobs, func(j load.JobPlan) bool { return j.Writes })
		if !writes || every == 0 || lasted >= checkpointsLeast*every || began >= checkpointsLeast {
			continue
		}
		f := in.About(l, finding.Warning, "Run the load for "+rule.Span(checkpointsLeast*every)+" at least, or set a shorter checkpoint_timeout.",
			"%s was measured for %s, less than two checkpoint intervals of its database (%s each)", in.Name(l), rule.Span(lasted), rule.Span(every))
		if counted {
			f.Claim += ": " + textio.Plural(began, "checkpoint") + " began"
		}
		f.Claim += "."
		before, reported := shortest[l.Workload]
		switch {
		case !reported:
			list = append(list, f)
		case lasted < before:
			list[slices.IndexFunc(list, func(o finding.Finding) bool { return o.Subject == l.Workload })] = f
		default:
			continue
		}
		shortest[l.Workload] = lasted
	}
	return list
}

// checkpointsOf returns how many checkpoints began while a load ran, on the VM with the fewest; counted is false if its databases do not say.
func checkpointsOf(in *rule.Input, l *result.LoadSummary) (began int, counted bool) {
	for i, s := range in.Digest.Of(l.Workload, l.Instance, false) {
		if s.Checkpoints == nil {
			return 0, false
		}
		if i == 0 || s.Checkpoints.Count < began {
			began, counted = s.Checkpoints.Count, true
		}
	}
	return began, counted
}
