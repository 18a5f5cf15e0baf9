package document

import (
	"math"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/result"
)

// livedOn is the change of the VMs of a summed rate that no event took away: the others are missing in the sum, which says nothing
// about the platform. It is unknown unless the time looked at after the event, or before the next one, lies in the window, for
// the same VMs.
func livedOn(d *Document, r *Result, w *result.Window) result.Number {
	var first *result.ImpactLoad // of the first event that took VMs away
	for i := range d.Impacts {
		m := &d.Impacts[i]
		for j := range m.Loads {
			l := &m.Loads[j]
			if !isAbout(l, r) || l.Quantity != r.Type || l.LivedOn == nil || l.LivedOn.Unknown != "" {
				continue
			}
			if first == nil && l.TakenAway != nil {
				first = l
			}
			if first == nil || first.LivedOn.Count != l.LivedOn.Count || !slices.Equal(living(first), living(l)) {
				continue
			}
			before := &l.LivedOn.Baseline
			switch {
			case m.Event == w.Before && l.UntilNanos <= w.ToNanos+int64(time.Second):
				return l.LivedOn.Level/first.LivedOn.Baseline.Mean - 1
			case m.Event == w.After && l != first && before.FromNanos >= w.FromNanos && before.ToNanos <= w.ToNanos+int64(time.Second):
				return before.Mean/first.LivedOn.Baseline.Mean - 1 // the baseline of the next event is in this window
			}
		}
	}
	return result.Number(math.NaN())
}

// isAbout reports whether the rate of a load is in a result.
func isAbout(l *result.ImpactLoad, r *Result) bool {
	return l.Workload == r.Workload || r.Workload == "" && l.Group == r.Group
}

// living are the VMs of a load that an event did not take away.
func living(l *result.ImpactLoad) []string {
	var list []string
	for i := range l.Single {
		if !l.Single[i].Taken {
			list = append(list, l.Single[i].VM)
		}
	}
	slices.Sort(list)
	return list
}

// gone counts the VMs of a summed rate that the event before a window took away, or an earlier one to the end of the window.
func gone(d *Document, r *Result, w *result.Window) (vms, of int) {
	if w.Name == "" || r.Type != "iops" && r.Type != "bandwidth" || r.Aggregate != "sum" {
		return 0, 0
	}
	for i := range d.Impacts {
		m := &d.Impacts[i]
		for j := range m.Loads {
			l := &m.Loads[j]
			if l.TakenAway == nil || !isAbout(l, r) || m.FromNanos > w.FromNanos+int64(time.Second) {
				continue
			}
			if m.Event == w.Before || l.TakenAway.Stall.Open && l.UntilNanos >= w.ToNanos-int64(time.Second) {
				vms += l.TakenAway.Count
				of = max(of, l.TakenAway.Count+lived(l))
			}
		}
	}
	return vms, of
}

func lived(l *result.ImpactLoad) int {
	if l.LivedOn == nil {
		return 0
	}
	return l.LivedOn.Count
}
