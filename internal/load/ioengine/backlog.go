package ioengine

import (
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// What was due while nothing could be issued is a backlog. It is worked off as fast as the queue allows, as fio does, or
// given up: an operation that is later than a bound is dropped then, counted, and never issued. Those that are issued keep
// their intended starts, so their response times stay true.

// backlogDropDefault is how late an operation may be before it is dropped, where no bound is given.
const backlogDropDefault = 10 * time.Millisecond

// ParseBacklog reads what becomes of a backlog: "work-off", "drop" or "drop:TIME". 0 works it off.
func ParseBacklog(text string) (dropAfter time.Duration, err error) {
	name, bound, has := strings.Cut(text, ":")
	bad := &diag.Error{
		Code: "backlog", Exit: diag.ExitUsage, Message: fmt.Sprintf("backlog=%s: there is no such policy", text),
		Hint: "work-off, drop, or drop:20ms for operations that are later than that",
	}
	switch {
	case name == "work-off" && !has:
		return 0, nil
	case name == "drop" && !has:
		return backlogDropDefault, nil
	case name == "drop":
		with, err := fiojob.Job{}.With("latency_target", bound) // a time as jobs have them
		if err != nil || with.Control.LatencyTarget <= 0 {
			return 0, bad
		}
		return with.Control.LatencyTarget, nil
	}
	return 0, bad
}

// DropBacklog makes operations that are later than after be dropped and counted; 0 works a backlog off. It must be called
// before Run.
func (r Run) DropBacklog(after time.Duration) {
	for _, workers := range r.phases {
		for _, w := range workers {
			for i := range w.lanes {
				w.lanes[i].dropAfter = int64(after)
			}
		}
	}
}
