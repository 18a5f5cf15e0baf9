package analysis

import (
	"cmp"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// singleMax bounds how many operations a summary lists one by one.
const singleMax = 10_000

// unwatchedMin and unwatchedShare: statistics do not count an end that may have been earlier by more than both.
const (
	unwatchedMin   = int64(1e9)
	unwatchedShare = 0.1 // of the duration
)

// nodeOperations are done to nodes; all others to VMs.
var nodeOperations = []interval.Operation{interval.OperationNodeOff, interval.OperationNodeShutdown, interval.OperationNodeOn,
	interval.OperationHostUp, interval.OperationClusterReady}

// Operations pairs starts and ends of operations, in the order of their starts.
func (t *Timeline) Operations() []result.OperationTook {
	var list []result.OperationTook
	open := map[int]int{}
	for _, e := range t.events {
		switch e.Kind {
		case interval.EventOperationStarted:
			open[e.OperationID] = len(list)
			list = append(list, result.OperationTook{ID: e.OperationID, Part: e.Part, Operation: e.Operation, Phase: e.Phase, Group: e.Group,
				Subject: e.Subject, Node: e.Node, VMs: e.Count, FromNanos: e.AtNanos, Simulated: e.Simulate})
		case interval.EventOperationEnded:
			i, ok := open[e.OperationID]
			if !ok || list[i].Operation != e.Operation {
				continue // the record lacks its start
			}
			delete(open, e.OperationID)
			to, took := e.AtNanos, e.AtNanos-list[i].FromNanos
			list[i].ToNanos, list[i].TookNanos, list[i].UnwatchedNanos, list[i].Error = &to, &took, e.SpanNanos, e.Error
		}
	}
	return list
}

// Durations summarizes operations. It is nil if the record has none.
func (t *Timeline) Durations() *result.Durations {
	all := t.Operations()
	if len(all) == 0 {
		return nil
	}
	d := &result.Durations{Operations: operationStats(all), Single: all}
	if len(all) > singleMax {
		d.Single, d.LeftOut = all[:singleMax], len(all)-singleMax
	}
	return d
}

type statsKey struct {
	operation interval.Operation
	of        string
}

// operationStats summarizes each operation: those on one VM or node, and calls for several VMs.
func operationStats(all []result.OperationTook) []result.OperationStats {
	told := map[int]bool{} // calls for which the provider reported the parts
	for i := range all {
		told[all[i].Part] = true
	}
	stats := map[statsKey]*result.OperationStats{}
	took, bounds := map[statsKey][]float64{}, map[statsKey][]float64{}
	uncertain, uncertainBounds := map[statsKey]int64{}, map[statsKey]int64{}
	for i := range all {
		o := &all[i]
		of := "VM"
		switch {
		case slices.Contains(nodeOperations, o.Operation):
			of = "node"
		case o.Subject == "" && o.VMs == 1 && told[o.ID]:
			continue // its only part has the same duration
		case o.Subject == "" && o.VMs != 1:
			of = "call"
		}
		key := statsKey{o.Operation, of}
		s := stats[key]
		if s == nil {
			s = &result.OperationStats{Operation: o.Operation, Of: of}
			stats[key] = s
		}
		s.Simulated = s.Simulated || o.Simulated
		s.Count++
		switch {
		case o.TookNanos == nil:
			s.Open++
		case o.Error != "":
			s.Failed++
		case unwatched(o):
			s.Unwatched++
			bounds[key] = append(bounds[key], float64(*o.TookNanos))
			uncertainBounds[key] = max(uncertainBounds[key], o.UnwatchedNanos)
		default:
			took[key] = append(took[key], float64(*o.TookNanos))
			uncertain[key] = max(uncertain[key], o.UnwatchedNanos)
		}
	}
	list := make([]result.OperationStats, 0, len(stats))
	for key, s := range stats {
		values, within := took[key], uncertain[key]
		if len(values) == 0 {
			values, within = bounds[key], uncertainBounds[key] // no exact durations: show the bounds
		}
		s.Min, s.Median, s.P95, s.Max = ranks(values)
		s.UncertainNanos = within
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b result.OperationStats) int {
		return cmp.Or(cmp.Compare(place(a.Operation), place(b.Operation)), -cmp.Compare(a.Of, b.Of), cmp.Compare(a.Operation, b.Operation))
	})
	return list
}

// place is the sort position of an operation in lists; unknown operations come last.
func place(o interval.Operation) int {
	if i := slices.Index(interval.Operations, o); i >= 0 {
		return i
	}
	return len(interval.Operations)
}

func unwatched(o *result.OperationTook) bool {
	return o.UnwatchedNanos > unwatchedMin && float64(o.UnwatchedNanos) > unwatchedShare*float64(*o.TookNanos)
}

func ranks(values []float64) (least, median, p95, most result.Number) {
	missing := result.Number(nan)
	if len(values) == 0 {
		return missing, missing, missing, missing
	}
	slices.Sort(values)
	return result.Number(values[0]), result.Number(medianOf(values)), percentile(values, 0.95), result.Number(values[len(values)-1])
}
