package document

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/textio"
)

// Values of Document.Ended for a bundle without a summary.
const (
	EndedNotYet = "running"    // the run is still being written
	endedNever  = "unfinished" // the process that wrote it died
)

// Open reports whether the run is still running or was cut off, so that it was neither evaluated nor audited.
func (d *Document) Open() bool { return d.Ended == EndedNotYet || d.Ended == endedNever }

// withoutSummary describes a run without results: still running, with its progress, or cut off.
func (d *Document) withoutSummary(run *Run) {
	if run.Going <= 0 {
		d.Ended, d.DurationNanos = endedNever, lastEvent(run.Events)
		d.Reason = "The run has no summary: it was cut off before it was sealed."
		return
	}
	d.Ended, d.DurationNanos = EndedNotYet, run.Going.Nanoseconds()
	// A clock that was set back would give a negative time; a run of less than a second has just begun.
	since := draw.Duration(run.Going.Round(time.Second).Nanoseconds())
	d.Reason = fmt.Sprintf("The run has been running since %s (%s). Results are available when it ends.%s",
		d.Created.UTC().Format("2006-01-02 15:04:05 MST"), since, progress(d, run.Events))
}

// progress describes in a sentence how far a run has got.
func progress(d *Document, events []interval.Event) string {
	done := 0
	var now []string
	for i := range d.Steps {
		switch s := &d.Steps[i]; {
		case s.Ended:
			done++
		case s.Started:
			now = append(now, s.Heading())
		}
	}
	if len(d.Steps) == 0 {
		return ""
	}
	text := fmt.Sprintf(" %d of %d steps are done", done, len(d.Steps))
	if len(now) > 0 {
		text += ", " + textio.JoinAnd(now) + " is running"
	}
	if loads := loadsGoing(events); len(loads) > 0 {
		text += "; load: " + textio.JoinAnd(loads)
	}
	return strings.TrimRight(text, ".") + "."
}

// loadsGoing names the workloads that have begun and not ended, in the order in which they began.
func loadsGoing(events []interval.Event) []string {
	type start struct {
		workload string
		instance int
		prefill  bool
	}
	var going []start
	for _, e := range events {
		s := start{e.Workload, e.Instance, e.Prefill}
		switch e.Kind {
		case interval.EventWorkloadStart:
			going = append(going, s)
		case interval.EventWorkloadEnd:
			going = slices.DeleteFunc(going, func(g start) bool { return g == s })
		}
	}
	var names []string
	for _, g := range going {
		if !slices.Contains(names, g.workload) {
			names = append(names, g.workload)
		}
	}
	return names
}
