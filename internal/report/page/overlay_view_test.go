package page

import (
	"math"
	"testing"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// TestOverlays: lines of two loads, the second of which started at 100 s, begin together; gaps at the end do not make the chart wider.
func TestOverlays(t *testing.T) {
	line := func(name string, from float64) document.Result {
		return document.Result{Evaluated: result.Evaluated{Title: name, Workload: name, Type: "iops", Unit: "IOPS", Overlay: "Both", Series: []result.Series{{Name: "all",
			Points: result.Points{{Seconds: from + 1, Value: 10}, {Seconds: from + 2, Value: 20}, {Seconds: from + 60, Value: math.NaN()}}}}}}
	}
	d := &document.Document{Results: []document.Result{line("A", 40), line("B", 100), {Evaluated: result.Evaluated{Title: "empty", Overlay: "Both"}}}}
	d.Workloads = []document.Workload{{Name: "B", FromNanos: 5e9, Prefill: true}, {Name: "A", FromNanos: 40e9}, {Name: "B", FromNanos: 100e9}, {Name: "B", FromNanos: 300e9}}
	list := newOverlays(d)
	if len(list) != 1 || list[0].name != "Both" || !list[0].Drawn {
		t.Fatalf("%d overlays", len(list))
	}
	c := list[0].chart
	if c.From != 0 || c.To != 2 || c.Unit != "IOPS" || len(c.Tables) != 1 || len(c.Tables[0].Lines) != 2 {
		t.Fatalf("chart from %g to %g in %s: %+v", c.From, c.To, c.Unit, c.Tables)
	}
	if x := c.Tables[0].X; x[0] != 1 || x[1] != 2 {
		t.Errorf("times %v", x)
	}
	for i, name := range []string{"A", "B"} {
		if l := c.Tables[0].Lines[i]; l.Name != name || l.Y[1] != 20 || l.Color != i {
			t.Errorf("line %d: %+v", i, l)
		}
	}
	d.Results = d.Results[1:]
	if list := newOverlays(d); len(list) != 0 {
		t.Errorf("%d overlays of one line", len(list))
	}
}
