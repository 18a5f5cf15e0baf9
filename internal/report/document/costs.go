package document

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/impact"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// costsMax bounds the events on the first screen.
const costsMax = 6

// CostsShown picks the events whose sentences stand on the first screen, in the order of time, and counts the others: events in
// which something was seen come before those without an effect.
func CostsShown(d *Document) (shown []Impact, more int) {
	for _, want := range []bool{true, false} {
		for i := range d.Impacts {
			if len(shown) < costsMax && seen(&d.Impacts[i].Impact) == want {
				shown = append(shown, d.Impacts[i])
			}
		}
	}
	slices.SortStableFunc(shown, func(a, b Impact) int { return cmp.Compare(a.FromNanos, b.FromNanos) })
	return shown, len(d.Impacts) - len(shown)
}

// CostsNote states the baselines of events that are shown, where they are not the first window of the numbers above: the last stretch
// before an event without another change. It is empty if all are the same.
func CostsNote(d *Document, shown []Impact) string {
	var whole result.Window
	for i := range d.Headlines {
		if parts := d.Headlines[i].Parts; len(parts) > 1 {
			at := slices.IndexFunc(d.Windows, func(w result.Window) bool { return w.Name == parts[0].Window })
			whole = d.Windows[max(at, 0)]
			break
		}
	}
	var list []string
	other := false
	for i := range shown {
		for k := range shown[i].Loads {
			l := &shown[i].Loads[k]
			score := cmp.Or(l.LivedOn, l.TakenAway)
			if score == nil {
				continue
			}
			b := score.Baseline
			text := unit.FormatClock(b.FromNanos) + " to " + unit.FormatClock(b.ToNanos)
			if b.ToNanos == 0 || slices.Contains(list, text) {
				continue
			}
			list = append(list, text)
			other = other || max(b.FromNanos-whole.FromNanos, whole.FromNanos-b.FromNanos, b.ToNanos-whole.ToNanos, whole.ToNanos-b.ToNanos) > int64(time.Second)
		}
	}
	if !other || whole.ToNanos == 0 {
		return ""
	}
	return "Sentences compare with the last stretch before an event without another change (" + textio.Few(list, 3) + "), the table with its first window."
}

// seen reports whether an event had an effect.
func seen(i *result.Impact) bool {
	return slices.ContainsFunc(i.Loads, func(l result.ImpactLoad) bool {
		return l.TakenAway != nil || l.LivedOn != nil && (l.LivedOn.Dip.Seen || l.LivedOn.Stall.Nanos > 0)
	})
}

// CostTable has two rows for each event and load at most: VMs that lived on, and VMs that the event took away.
func CostTable(d *Document) draw.Table {
	t := draw.Table{Heads: []string{"at", "event", "load", "VMs", "baseline", "afterwards", "deepest", "longest stall", "first I/O",
		"back to 10 %", "back to 5 %", "operations lost", "p99 before", "p99 during", "p99 after"}, Left: 4}
	for i := range d.Impacts {
		m := &d.Impacts[i].Impact
		for j := range m.Loads {
			l := &m.Loads[j]
			for _, row := range []struct {
				which string
				score *result.ImpactScore
			}{{"lived on", l.LivedOn}, {"taken away", l.TakenAway}} {
				if row.score != nil {
					t.Add(append([]string{unit.FormatClock(m.FromNanos), impact.Title(m), l.Workload,
						fmt.Sprintf("%d %s", row.score.Count, row.which)}, costCells(row.score, l.Unit)...)...)
				}
			}
		}
	}
	return t
}

func costCells(s *result.ImpactScore, of string) []string {
	stall := "–"
	if s.Stall.Nanos > 0 {
		stall = draw.Duration(s.Stall.Nanos)
	}
	first := "–"
	if s.FirstIONanos != nil {
		first = draw.Duration(*s.FirstIONanos)
	}
	cells := []string{draw.Quantity(float64(s.Baseline.Mean), of), draw.Quantity(float64(s.Level), of), deepest(s), stall, first,
		backText(s, s.Within10), backText(s, s.Within5), lostText(&s.Lost)}
	for _, l := range []*result.LatencyDigest{s.Latency.Before, s.Latency.During, s.Latency.After} {
		text := "–"
		if l != nil {
			if text = draw.Quantity(float64(l.P99), "ns"); l.AtLeast.Has("p99") {
				text = "≥ " + text
			}
		}
		cells = append(cells, text)
	}
	return cells
}

// deepest is the depth of the dip, or what would have been seen.
func deepest(s *result.ImpactScore) string {
	switch {
	case s.Unknown != "":
		return "unknown"
	case s.Dip.Seen:
		return fmt.Sprintf("−%s over %d s", unit.FormatPercent(float64(s.Dip.Depth)), s.Dip.OverSeconds)
	case math.IsNaN(float64(s.Dip.Detectable)):
		return "none seen"
	}
	return "none seen (would see " + unit.FormatPercent(float64(s.Dip.Detectable)) + ")"
}

func backText(s *result.ImpactScore, b result.ImpactBack) string {
	switch {
	case s.Unknown != "" || b.Nanos == nil && !s.Dip.Seen:
		return "–"
	case b.Nanos == nil:
		return "not seen"
	case *b.Nanos == 0:
		return "never left"
	}
	return draw.Duration(*b.Nanos)
}

func lostText(l *result.ImpactLost) string {
	text := "–"
	if lost := float64(l.Operations); !math.IsNaN(lost) && lost != 0 {
		text = unit.FormatCount(lost)
		if u := float64(l.UncertainOperations); u > 0 {
			text += " ± " + unit.FormatCount(u)
		}
	}
	if l.Failed > 0 {
		text += fmt.Sprintf(", %s failed", unit.FormatWhole(l.Failed))
	}
	return text
}
