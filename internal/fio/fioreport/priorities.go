package fioreport

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
	"github.com/braggdev/bragg/internal/stat"
)

// Reports have latencies by priority if operations have at least two different priorities, as in fio.

// jsonPriority is one entry of "prios".
type jsonPriority struct {
	Class   int          `json:"prioclass"`
	Level   int          `json:"prio"`
	Service *jsonLatency `json:"clat_ns,omitempty"`
	// Response replaces it with lat_percentiles.
	Response *jsonLatency `json:"lat_ns,omitempty"`
}

// priorities returns the priorities of a direction's operations, in order; none if all had the same.
func (row *Row) priorities(directions ...int) []measuring.PriorityLatency {
	var merged measuring.Account
	for _, d := range directions {
		var one measuring.Account
		one.Priorities[0] = row.Account.Priorities[d]
		merged.Add(&one)
	}
	list := slices.DeleteFunc(merged.Priorities[0], func(l measuring.PriorityLatency) bool { return l.Service.Count() == 0 })
	if len(list) < 2 {
		return nil
	}
	slices.SortFunc(list, func(a, b measuring.PriorityLatency) int { return int(a.Priority) - int(b.Priority) })
	return list
}

// jsonPriorities are the entries for a direction.
func (d *namedDirection) jsonPriorities(p percentiles, bins bool) []jsonPriority {
	var out []jsonPriority
	for i := range d.priorities {
		l := &d.priorities[i]
		entry := jsonPriority{Class: l.Priority.Class(), Level: l.Priority.Level()}
		of := latencyOf(&l.Service, p.clat, bins)
		if entry.Service = &of; p.lat != nil {
			of = latencyOf(&l.Response, p.lat, bins)
			entry.Service, entry.Response = nil, &of
		}
		out = append(out, entry)
	}
	return out
}

// textPriorities writes the latencies of each priority, or their percentiles.
func (d *namedDirection) textPriorities(b *strings.Builder, p percentiles, shares bool) {
	total := uint64(0)
	for i := range d.priorities {
		total += d.priorities[i].Service.Count()
	}
	for i := range d.priorities {
		l := &d.priorities[i]
		kind, of, list := "clat", &l.Service, p.clat
		if p.lat != nil {
			kind, of, list = "lat", &l.Response, p.lat
		}
		name := fmt.Sprintf("%s prio %d/%d", kind, l.Priority.Class(), l.Priority.Level())
		if shares {
			textPercentiles(b, fmt.Sprintf("%s (%.2f%% of IOs)", name, percentOf(of, total)), of, list)
			continue
		}
		textLatency(b, "    "+name, of)
	}
}

func percentOf(h *stat.Histogram, total uint64) float64 {
	return 100 * float64(h.Count()) / float64(max(1, total))
}
