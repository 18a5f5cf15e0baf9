package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// eventLead is how long before a drop an event of the run may have caused it.
const eventLead = int64(2e9)

var checkpointStalls = rule.Rule{
	Code:    "checkpoint-stalls",
	Summary: "the rate of a database fell at its checkpoints",
	Doc: "While a checkpoint of the database ran, or right after its last write, the rate was below half of that before the checkpoint, " +
		"in two samples or more. Writes of the checkpoint fill the queue of the disk, and commits wait behind its sync. Means and " +
		"percentiles then depend on how many checkpoints are in a window. A drop in which an event of the run falls is not " +
		"attributed to the checkpoint.",
	Example: `oltp: the rate fell at 3 of 5 checkpoints, at worst to 12 % for 4 s, from 530 to 64 operations/s at 3:05.`,
	Check:   checkCheckpointStalls,
}

func checkCheckpointStalls(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		judged, stalled := 0, map[checkpoint]bool{}
		var worst digest.Drop
		for _, s := range in.Digest.Of(l.Workload, l.Instance, false) {
			if s.Checkpoints == nil {
				continue
			}
			judged += s.Checkpoints.Judged
			for _, d := range s.Checkpoints.All() {
				if duringEvent(in.Summary.Windows, d) {
					continue
				}
				stalled[checkpoint{s.VM, d.CheckpointNanos}] = true
				if lost(d) > lost(worst) {
					worst = d
				}
			}
		}
		if len(stalled) == 0 {
			continue
		}
		f := in.About(l, finding.Info, "Spread the writes of checkpoints (checkpoint_completion_target near 1, a larger max_wal_size), put the WAL on a disk of its own, "+
			"and let a window hold several checkpoints.",
			"%s: the rate fell at %d of %d checkpoints, at worst to %s for %s, from %s to %s %s at %s.", in.Name(l), len(stalled), judged,
			unit.FormatWholePercent(worst.Mean/worst.Before), rule.Span(worst.ToNanos-worst.FromNanos), unit.FormatCount(worst.Before),
			unit.FormatCount(worst.Mean), l.Engine().RateUnit(), unit.FormatClock(worst.FromNanos))
		f.Evidence = []string{fmt.Sprintf("the checkpoint began at %s", unit.FormatClock(worst.CheckpointNanos))}
		list = append(list, f)
	}
	return list
}

type checkpoint struct {
	vm string
	at int64
}

// lost is how many operations a drop cost.
func lost(d digest.Drop) float64 { return (d.Before - d.Mean) * float64(d.ToNanos-d.FromNanos) }

// duringEvent reports whether a window begins in the drop or shortly before it.
func duringEvent(windows []result.Window, d digest.Drop) bool {
	for _, w := range windows {
		if w.FromNanos > d.FromNanos-eventLead && w.FromNanos < d.ToNanos {
			return true
		}
	}
	return false
}
