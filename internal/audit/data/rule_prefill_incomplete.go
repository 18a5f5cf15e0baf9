package data

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// prefillMissed is the share of its range that a prefill may leave out: the last blocks of devices whose size is odd.
	prefillMissed = 0.01
	// coverageMissed is the share that random writes may leave out: seven passes do.
	coverageMissed = 0.001
)

var PrefillIncomplete = rule.Rule{
	Code:    "prefill-incomplete",
	Summary: "a prefill, or a load in place of one, wrote less than the range that is read",
	Doc: "A prefill writes all ranges that its workload uses. This one wrote less: it failed, was stopped, or lost its VM. Or only random " +
		"writes without a map (norandommap) wrote the range: writes of k times its size leave e^-k of it out, 37 % after one pass. The " +
		"rest is still empty, and thin storage answers reads of it without disk I/O.",
	Example:  `The prefill of OLTP wrote 2.1 GiB of 4 GiB per VM: reads of the rest need no disk.`,
	Check:    checkPrefillIncomplete,
	Flatters: true,
}

func checkPrefillIncomplete(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	wrote, last := map[string]int64{}, map[string]*result.LoadSummary{}
	for i := range in.Summary.Loads {
		if l := &in.Summary.Loads[i]; l.Prefill {
			wrote[l.Workload] += int64(l.Total.Bytes) / int64(max(1, l.VMs))
			last[l.Workload] = l
		}
	}
	for _, w := range in.KnownPlan().Workloads {
		if w.Prefill == nil || wrote[w.Name] == 0 {
			continue
		}
		all := extent.Bytes(w.Prefill.Extents)
		if float64(wrote[w.Name]) >= (1-prefillMissed)*float64(all) {
			continue
		}
		list = append(list, finding.Finding{Severity: finding.Warning, Subject: w.Name, FromNanos: last[w.Name].FromNanos,
			ToNanos: last[w.Name].ToNanos,
			Claim: fmt.Sprintf("The prefill of %s wrote %s of %s per VM: reads of the rest need no disk.", w.Name,
				unit.FormatBytes(wrote[w.Name]), unit.FormatBytes(all)),
			Advice: "Repeat the run, and check the errors of its setup phase.",
		})
	}
	return append(list, sparse(in)...)
}

// sparse finds reads of what only random writes without a map wrote.
func sparse(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Planned(in) {
		mapped := l.Jobs(func(j *load.JobPlan) bool {
			return j.Writes && !(j.NoRandomMap && strings.HasPrefix(j.Pattern, "rand"))
		})
		written := slices.DeleteFunc(slices.Clone(l.Plan.Extents), func(e extent.Extent) bool { return !e.Writes })
		passes := float64(l.Directions[interval.Write].Bytes) / float64(max(1, l.VMs)) / float64(max(1, extent.Bytes(written)))
		for _, r := range rule.Planned(in) {
			reader, _ := in.KnownPlan().Workload(r.Workload)
			only := extent.Without(written, writtenBefore(in, reader, r.FromNanos, l.Workload))
			missed := math.Exp(-passes) * float64(extent.Common(only, r.Plan.Extents)) / float64(max(1, extent.Bytes(r.Plan.Extents)))
			if len(mapped) > 0 || !r.Plan.Reads() || l.Group != r.Group || l.FromNanos >= r.FromNanos || missed <= coverageMissed {
				continue
			}
			list = append(list, in.About(r.LoadSummary, finding.Warning, "Add workload.PrefillRun to the setup phase, or remove norandommap.",
				"About %s of what %s reads is empty: only random writes of %s wrote it, %.2g times its size.", unit.FormatPercent(missed),
				in.Name(r.LoadSummary), in.Name(l.LoadSummary), passes))
			list[len(list)-1].Share = missed
		}
	}
	return list
}
