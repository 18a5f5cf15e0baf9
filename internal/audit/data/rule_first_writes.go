package data

import (
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

var FirstWrites = rule.Rule{
	Code:    "first-writes",
	Summary: "writes went to space that was never written before",
	Doc: "Thin storage allocates space at the first write of a block: the write waits for the metadata, and later writes of the " +
		"block do not. Copy-on-write and flash behave alike: nothing has to be freed or moved yet. A load that overwrites data " +
		"shows other numbers, so its ranges are written first. Sequential writes, and loads that write each block once and end, may be " +
		"a fill on purpose: their severity is info, and warning for all others.",
	Example: `OLTP writes to 4 GiB per VM that nothing wrote before: its numbers include the allocation of space.`,
	Check:   checkFirstWrites,
}

func checkFirstWrites(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Planned(in) {
		w, _ := in.KnownPlan().Workload(l.Workload)
		writes := slices.DeleteFunc(slices.Clone(l.Plan.Extents), func(e extent.Extent) bool { return !e.Writes })
		fresh, all := extent.Bytes(extent.Without(writes, writtenBefore(in, w, l.FromNanos-1, ""))), extent.Bytes(writes)
		if all == 0 || float64(fresh) < unwrittenNoticed*float64(all) {
			continue
		}
		f := in.About(l.LoadSummary, finding.Info, "Add workload.PrefillRun for this workload to the setup phase.",
			"%s writes to %s per VM that nothing wrote before: its numbers include the allocation of space.", in.Name(l.LoadSummary),
			unit.FormatBytes(fresh))
		f.Evidence = []string{"range written: " + unit.FormatBytes(all)}
		if l.CompletionNanos == 0 && len(l.Jobs(func(j *load.JobPlan) bool { return j.Writes && strings.HasPrefix(j.Pattern, "rand") })) > 0 {
			f.Severity = finding.Warning
		}
		list = append(list, f)
	}
	return list
}
