package compare

import (
	"slices"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// perCPU is the throughput of a load on databases for each of their CPUs. Empty unless two runs at least are known to have them, and their
// numbers differ: otherwise ratios are those of the throughput itself.
func perCPU(loads []*document.Workload) []Figure {
	list := []Figure{}
	var known []*document.Workload
	for _, w := range loads {
		if w != nil && w.DatabaseCPUs != nil {
			known = append(known, w)
		}
	}
	same := func(w *document.Workload) bool { return *w.DatabaseCPUs == *known[0].DatabaseCPUs }
	if len(known) < 2 || !slices.ContainsFunc(known, func(w *document.Workload) bool { return !same(w) }) {
		return list
	}
	unit := rateUnitOf(loads)
	for _, f := range []struct {
		name, unit string
		of         func(*document.Workload) result.Number
	}{
		{"vCPUs", "vCPUs", func(w *document.Workload) result.Number { return result.Number(w.DatabaseCPUs.VCPUs) }},
		{"cores", "cores", func(w *document.Workload) result.Number { return result.Number(w.DatabaseCPUs.Cores) }},
		{figureRate + " and vCPU", unit, (*document.Workload).PerVCPU},
		{figureRate + " and core", unit, (*document.Workload).PerCore},
	} {
		values := make([]result.Number, len(loads))
		for i, w := range loads {
			if values[i] = unknown; w != nil && w.DatabaseCPUs != nil {
				values[i] = f.of(w)
			}
		}
		list = append(list, figure(f.name, f.unit, values, nil))
	}
	return list
}
