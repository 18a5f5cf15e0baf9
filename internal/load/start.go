package load

import (
	"context"
	"time"
)

// Preparer is implemented by Runners that can hold a prepared workload, so that several VMs start at the same time.
type Preparer interface {
	// Prepare returns when w could start at once. A cancelled ctx cancels it, even later while it waits for its start. The
	// caller calls Run or Discard, once.
	Prepare(ctx context.Context, w Workload, sink Sink) (Held, error)
}

// Held is a prepared workload that waits for its start.
type Held interface {
	// Timing returns how early a start has to be announced, and the accuracy of the clock.
	Timing() Timing
	// Run starts at the given time, or at once if that has passed, and continues like Runner.Run.
	Run(ctx context.Context, at time.Time) error
	// Discard releases the prepared workload without running it.
	Discard()
}

// Splitter is implemented by a Held that runs, and by Instances, whose intervals can end at any time.
type Splitter interface {
	// Split ends the interval at a time to come, beside its regular end, so that the window of a step begins there exactly.
	// An error means that this interval does not.
	Split(ctx context.Context, at time.Time) error
}

// Timing is what a coordinator of a common start needs to know about one VM.
type Timing struct {
	Trip       time.Duration // round trip of a message to the VM
	ClockError time.Duration // uncertainty of the VM's clock; 0: it is the clock of this machine
}

// Timed is implemented by Instances that can be placed on the run's axis after they were prepared. Others use the place in
// their Workload.
type Timed interface {
	// SetTime replaces ZeroUnixNanos and StartNanos of the workload. It may only be called before Run.
	SetTime(zeroUnixNanos, startNanos int64)
}
