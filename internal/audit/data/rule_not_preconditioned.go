package data

import (
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// preconditionedPasses is how many times SNIA's Solid State Storage Performance Test Specification writes a device before it measures.
const preconditionedPasses = 2

var NotPreconditioned = rule.Rule{
	Code:    "not-preconditioned",
	Summary: "random writes went to data that had been written less than twice",
	Doc: "A flash drive that is fresh or was written once in order has free blocks and needs no cleaning. Random writes are fast until " +
		"these are used up, and then slow down several times. SNIA's test specification therefore writes a device twice before it " +
		"measures. What earlier runs wrote is not known, so this is only a note. Storage behind a large cache or log behaves alike.",
	Example:  `OLTP overwrites 4 GiB per VM at random that this run had written 1.00 times: flash drives slow down after about two.`,
	Flatters: true,
	Check:    checkNotPreconditioned,
}

func checkNotPreconditioned(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Planned(in) {
		random := l.Jobs(func(j *load.JobPlan) bool { return j.Writes && strings.HasPrefix(j.Pattern, "rand") })
		w, _ := in.KnownPlan().Workload(l.Workload)
		writes := slices.DeleteFunc(slices.Clone(l.Plan.Extents), func(e extent.Extent) bool { return !e.Writes })
		fresh, all := extent.Bytes(extent.Without(writes, writtenBefore(in, w, l.FromNanos-1, ""))), extent.Bytes(writes)
		passes := float64(bytesBefore(in, l.Group, l.FromNanos)) / float64(max(all, 1))
		known := passes > 0 && float64(fresh) < unwrittenNoticed*float64(all) // otherwise first-writes reports it
		if len(random) == 0 || !known || passes >= preconditionedPasses-prefillMissed || in.Manifest.Rehearsal != nil || in.Manifest.Target.Simulated {
			continue
		}
		list = append(list, in.About(l.LoadSummary, finding.Info,
			"Write the data twice before the measurement: a second start of the prefill, or a warm-up that writes at random until IOPS are steady.",
			"%s overwrites %s per VM at random that this run had written %s times: flash drives slow down after about two.", in.Name(l.LoadSummary),
			unit.FormatBytes(all), unit.ThreeDigits(passes)))
	}
	return list
}

// bytesBefore are the bytes that each VM of a group wrote until a time, in prefills and in other loads.
func bytesBefore(in *rule.Input, group string, atNanos int64) (bytes uint64) {
	for i := range in.Summary.Loads {
		l := &in.Summary.Loads[i]
		if l.Group == group && l.ToNanos <= atNanos && l.Engine().DoesIO() {
			bytes += l.Directions[interval.Write].Bytes / uint64(max(1, l.VMs))
		}
	}
	return bytes
}
