package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// missingShareUndecided is the share of missing intervals from which a mean says little about the whole.
const missingShareUndecided = 0.05

var intervalsMissing = rule.Rule{
	Code:    "intervals-missing",
	Summary: "seconds of a workload were not recorded",
	Doc: "Intervals were lost with an agent or on the network. Charts show gaps, totals are too low, and the I/O in the " +
		"gap is unknown. A VM without power records nothing; such gaps are expected and not reported.",
	Example: `41 of 1,140 intervals of OLTP on OLTP-0003 are missing (3.6 %), the first from 5:00 to 5:41.`,
	Check:   checkIntervalsMissing,
}

func checkIntervalsMissing(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		var missing, all int64
		var first *digest.Stream
		f := finding.Finding{Severity: finding.Warning, Subject: l.Workload}
		for _, s := range in.Digest.Of(l.Workload, l.Instance, l.Prefill) {
			all += int64(s.Intervals) + s.Missing
			missing += s.Missing
			if s.Missing > 0 && first == nil {
				first = s
			}
			if s.Missing > 0 && len(f.Evidence) < evidenceMax {
				f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %d missing, first gap from %s to %s", s.VM, s.Missing,
					unit.FormatClock(s.Gaps[0].FromNanos), unit.FormatClock(s.Gaps[0].ToNanos)))
			}
		}
		if missing == 0 {
			continue
		}
		f.FromNanos, f.ToNanos = first.Gaps[0].FromNanos, first.Gaps[0].ToNanos
		f.Claim = fmt.Sprintf("%s of %s intervals of %s are missing (%s).", unit.FormatWhole(uint64(missing)), unit.FormatWhole(uint64(all)),
			in.Name(l),
			rule.Share(uint64(missing), uint64(all)))
		if f.Share = float64(missing) / float64(all); float64(missing) >= missingShareUndecided*float64(all) {
			f.Severity = finding.Undecided
		}
		list = append(list, f)
	}
	return append(list, unfinished(in)...)
}

// unfinished finds streams without a final interval: their last intervals may be missing. A VM that the run itself powered off
// could not send one.
func unfinished(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		f := finding.Finding{Severity: finding.Warning, Subject: l.Workload}
		n := 0
		for _, s := range in.Digest.Of(l.Workload, l.Instance, l.Prefill) {
			if _, cut := cutAt(in, s); s.Final || cut {
				continue
			}
			n++
			if len(f.Evidence) < evidenceMax {
				f.Evidence = append(f.Evidence, fmt.Sprintf("%s: last interval ends at %s", s.VM, unit.FormatClock(s.LastNanos)))
			}
		}
		if n == 0 {
			continue
		}
		f.Claim = fmt.Sprintf("%s on %s ended without a final interval; later operations were not recorded.", in.Name(l), textio.Plural(n, "VM"))
		list = append(list, f)
	}
	return list
}
