package analysis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

// Loads that end one after another, at 100 operations a second each: the sum for each second is the number of operations
// completed in it, until the last loads end together.
func TestSumOfLoadsThatEndOneAfterAnother(t *testing.T) {
	g := analysis.NewGrid(0, 9e9)
	for i := range 4 {
		vm := fmt.Sprint(i)
		for s := range 2 + i {
			g.Add(done(vm, float64(s), 1, 100, 1))
		}
		last := done(vm, float64(2+i), 0.4, 40, 1)
		last.Final = true
		g.Add(last)
	}
	g.Close()
	var lines []analysis.Line
	for i := range 4 {
		vm := fmt.Sprint(i)
		tracks := g.Tracks(func(t *analysis.Track) bool { return t.VM == vm })
		lines = append(lines, g.VMLine(vm, tracks, analysis.IOPS, analysis.Span{To: g.Cells}))
	}
	got := analysis.Combine(lines, "sum").Values
	// In second 2 three VMs continue and the first adds its 40; in second 4 only the last one continues beyond it.
	want := []float64{400, 400, 340, 240, missing, missing, missing, missing, missing}
	if !same(got, want) {
		t.Errorf("sum %v, want %v", got, want)
	}
}

// An interval across the border of two windows holds operations of both: it is in the whole and in neither of them.
func TestLatencyOfWindowsIsTheirOwn(t *testing.T) {
	l := analysis.Latency{Windows: []result.Window{{Name: "before", ToNanos: 4.6e9}, {Name: "after", FromNanos: 4.6e9, ToNanos: 10e9}}}
	for s := range 10 {
		latency := time.Millisecond
		if s >= 4 {
			latency = time.Second // of the event at 4.6 s on
		}
		iv := interval.Interval{VM: "a", StartNanos: int64(s) * 1e9, LengthNanos: 1e9}
		h := &stat.Histogram{}
		h.RecordN(uint64(latency), 10)
		iv.Directions[0] = interval.Traffic{Operations: 10, Service: h}
		l.Add(&iv)
	}
	times := l.Of("")
	counts := []uint64{times[0].Service().Count(), times[1].Service().Count(), times[2].Service().Count()}
	if counts[0] != 40 || counts[1] != 50 || counts[2] != 10 || times[0].Service().Max() > uint64(2*time.Millisecond) {
		t.Errorf("before, after, across: %v; before at most %d ns", counts, times[0].Service().Max())
	}
}
