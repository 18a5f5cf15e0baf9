package ioengine

import "time"

// What was due while nothing could be issued is a backlog. It is worked off as fast as the queue allows, as fio does, or
// given up: an operation that is later than a bound is dropped then, counted, and never issued. Those that are issued keep
// their intended starts, so their response times stay true.

// DropBacklog drops and counts operations that are more than after late; with 0 the backlog is worked off. It must be
// called before Run.
func (r Run) DropBacklog(after time.Duration) {
	for _, w := range r.workers() {
		for i := range w.lanes {
			w.lanes[i].dropAfter = int64(after)
		}
	}
}
