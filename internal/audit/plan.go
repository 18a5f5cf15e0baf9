package audit

import (
	"cmp"
	"slices"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
)

// plan returns the run's plan, an empty one where there is none.
func (in *Input) plan() *plan.Plan {
	if in.Plan == nil {
		return &plan.Plan{}
	}
	return in.Plan
}

// reads reports whether any job reads.
func reads(l *load.Plan) bool {
	return slices.ContainsFunc(l.Jobs, func(j load.JobPlan) bool { return j.Reads })
}

// direct reports whether any job bypasses the page cache.
func direct(l *load.Plan) bool {
	return slices.ContainsFunc(l.Jobs, func(j load.JobPlan) bool { return j.Direct })
}

// bytes is the number of distinct bytes of the extents, which may overlap.
func bytes(list []load.Extent) int64 {
	var n int64
	for _, e := range merged(list) {
		n += e.Length
	}
	return n
}

// merged sorts extents by device and offset and joins those that touch.
func merged(list []load.Extent) []load.Extent {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b load.Extent) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Offset, b.Offset))
	})
	var out []load.Extent
	for _, e := range list {
		if n := len(out) - 1; n >= 0 && out[n].Device == e.Device && e.Offset <= out[n].Offset+out[n].Length {
			out[n].Length = max(out[n].Length, e.Offset+e.Length-out[n].Offset)
			continue
		}
		out = append(out, e)
	}
	return out
}

// without returns what of list is not in taken.
func without(list, taken []load.Extent) []load.Extent {
	var out []load.Extent
	taken = merged(taken)
	for _, e := range merged(list) {
		at, end := e.Offset, e.Offset+e.Length
		for _, t := range taken {
			if t.Device != e.Device || t.Offset+t.Length <= at || t.Offset >= end {
				continue
			}
			if t.Offset > at {
				out = append(out, load.Extent{Device: e.Device, Offset: at, Length: t.Offset - at})
			}
			at = t.Offset + t.Length
		}
		if at < end {
			out = append(out, load.Extent{Device: e.Device, Offset: at, Length: end - at})
		}
	}
	return out
}
