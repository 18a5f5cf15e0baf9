package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// Bundle is the part of *result.Bundle that Read needs.
type Bundle interface {
	Manifest() result.Manifest
	Summary() (result.Summary, error)
	Plan() (json.RawMessage, error)
	Events() iter.Seq2[interval.Event, error]
}

// Read collects the parts of a bundle that a report needs. A bundle without a summary, of a run that is still running or was cut
// off, is not an error: the report says so. A damaged plan or damaged events become a caveat.
func Read(b Bundle) (*Run, error) {
	run := &Run{Manifest: b.Manifest()}
	summary, err := b.Summary()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read run %q: %w", run.Manifest.Run, err)
	}
	run.Summary = summary
	if run.Plan, err = b.Plan(); err != nil {
		run.caveat("Cannot read the plan of this bundle: %v.", err)
	}
	for e, err := range b.Events() {
		if err != nil {
			run.caveat("The events of this bundle are damaged after %s: %v.", unit.FormatClock(lastEvent(run.Events)), err)
			break
		}
		run.Events = append(run.Events, e)
	}
	return run, nil
}

func (r *Run) caveat(format string, args ...any) {
	// The list may be shared with the caller's Summary.
	list := r.Summary.Caveats
	r.Summary.Caveats = append(list[:len(list):len(list)], fmt.Sprintf(format, args...))
}

func lastEvent(events []interval.Event) int64 {
	var last int64
	for _, e := range events { // some are backdated to the time of what they report
		last = max(last, e.AtNanos)
	}
	return last
}
