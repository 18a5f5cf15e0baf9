// Package analysis turns the record of a run into numbers: the windows between its steps, series on a common grid of seconds,
// statistics per window, and roll-ups per start of a workload. It turns values of packages result and interval into values of
// package result. It opens no files and knows no scenario.
//
//	events ──▶ Timeline: phases, runs of workloads, windows
//	intervals ──▶ Grid (rates per VM and second), Latency (merged histograms), Stalls (gaps between completions),
//	               Loads (roll-ups)
//	Grid, Stalls, Timeline ──▶ series, result.Stats, result.LoadSummary
//
// Data that was not delivered is missing (NaN) everywhere; an interval without operations is zero.
package analysis

import (
	"math"
	"time"
)

// nan is a missing value.
var nan = math.NaN()

func isMissing(v float64) bool { return math.IsNaN(v) }

// CellLength is the resolution of the grid: generators deliver an interval a second.
const CellLength = time.Second

// seconds converts nanoseconds on the run's axis.
func seconds(nanos int64) float64 { return float64(nanos) / 1e9 }
