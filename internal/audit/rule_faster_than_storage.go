package audit

import (
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/unit"
)

// storageNanosMin is less than any storage takes for an operation: the medium of the fastest disks (3D XPoint) takes 7 µs, and the
// kernel's own path to a device 3 µs.
const storageNanosMin = 5_000

var fasterThanStorage = rule.Rule{
	Code:    "faster-than-storage",
	Summary: "operations completed faster than any disk",
	Doc: "Half of all operations took less than 5 µs, from submission to completion. No disk and no network does that: the page " +
		"cache, a disk in memory, or a layer that returns zeros served them. Trims are not checked.",
	Example: `Half of the read operations of OLTP took 1.9 µs or less: no disk answers that fast.`,
	Check:   checkFasterThanStorage,
}

func checkFasterThanStorage(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		if in.Manifest.Target.Simulated || !l.Engine().DoesIO() || slices.ContainsFunc(l.Engines, null) {
			continue
		}
		for d := range interval.Trim {
			h := l.Directions[d].Service
			if h == nil || h.Count() < samplesP99 || h.Quantile(0.5) >= storageNanosMin {
				continue
			}
			list = append(list, in.About(l, finding.Warning,
				"Set direct=1, write the data before it is read, and check that the disk is not in memory.",
				"Half of the %s operations of %s took %s or less: no disk answers that fast.", l.Engine().Operation(int(d)), in.Name(l),
				unit.FormatLatency(h.Quantile(0.5))))
		}
	}
	return list
}
