// Package rollup reads the intervals of a bundle fast: on all processors, and from merged records where they suffice. It knows nothing of
// results: what it delivers can be evaluated like single intervals.
//
//	intervals file ──source.go──▶ jobs ──job.go, in parallel──▶ Batch: each interval with totals only, and merged intervals
//	rollups file ─────────┘                          └─ merge.go: neighbors of one workload and VM become one
//	intervals file ──writer.go, while the run goes on──▶ rollups file
//
//	record.go  one record of the rollups file
//	memory.go  what batches are made of, used again and again
//
// A record covers a stretch of bytes of the intervals file. It is used where no border that matters to the evaluation lies within one of
// its merged intervals; elsewhere, and where there is no record, the intervals themselves are read.
package rollup

import (
	"time"

	"github.com/braggdev/bragg/internal/interval"
)

// Cell is how long merged intervals of a record are at most: their middles are between two multiples of it on the axis of the run.
const Cell = 30 * time.Second

// borderNanos is how close to a cut an interval is not merged. It exceeds the tolerance of everything that assigns intervals to windows.
const borderNanos = int64(60 * time.Millisecond)

// Batch is what a stretch of the intervals file contains, or a part of it, in three views.
type Batch struct {
	// Each has every interval, with totals in place of histograms of latencies (see stat.Histogram.Unfold), without devices, early
	// operations, waiting operations and times of failed ones.
	Each []interval.Interval
	// Merged has the same operations with complete histograms. Successive intervals of a workload on a VM are merged unless a cut
	// separates them. One that is final, waits or has early operations is alone. Gaps, gauges, devices and effort are left out.
	Merged []interval.Interval
	// Seconds has the response times of each start of a workload, of all directions and VMs together, as service times of the first
	// direction: those of the intervals whose middle is in a second of the axis. Prefills are left out.
	Seconds []interval.Interval

	memory *memory
}

// Cuts says what may be merged.
type Cuts struct {
	// AtNanos are times in order. An interval that has one within it or close to it is not merged.
	AtNanos []int64
	// Cells are divisions of the axis: intervals whose middles are in different cells are not merged.
	Cells []Division
}

// Division cuts the axis into cells of equal width.
type Division struct{ FromNanos, WidthNanos int64 }

func (d Division) cell(at int64) int64 {
	at -= d.FromNanos
	cell := at / d.WidthNanos
	if at%d.WidthNanos < 0 {
		cell--
	}
	return cell
}

// own is the division of records.
var own = Division{WidthNanos: int64(Cell)}

// fits reports whether records can be used: each cell of a record must lie within one cell of every division.
func (c *Cuts) fits() bool {
	for _, d := range c.Cells {
		if d.WidthNanos%own.WidthNanos != 0 || d.FromNanos%own.WidthNanos != 0 {
			return false
		}
	}
	return true
}

// place is where an interval belongs between the cuts: the number of the stretch between cuts, and a cell of each division. It is alone
// if a cut is within it or close to it.
type place struct {
	stretch int
	cells   [4]int64
	alone   bool
}
