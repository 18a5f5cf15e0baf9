package load

import (
	"context"
	"time"
)

// Preparer is implemented by Runners that can hold a prepared workload, so that several VMs start at the same time.
type Preparer interface {
	// Prepare returns when w could start at once. A cancelled ctx gives it up, also later while it waits for its start. The
	// caller calls Run or Discard, once.
	Prepare(ctx context.Context, w Workload, sink Sink) (Held, error)
}

// Held is a workload that is prepared and waits for its start.
type Held interface {
	// Timing returns how early a start has to be announced, and the accuracy of the clock.
	Timing() Timing
	// Run starts at the given time, or at once if that has passed, and continues like Runner.Run.
	Run(ctx context.Context, at time.Time) error
	// Discard releases the prepared workload without running it.
	Discard()
}

// Timing is what a coordinator of a common start needs to know about one VM.
type Timing struct {
	Trip       time.Duration // of a message to the VM and back
	ClockError time.Duration // how wrong the VM's clock may be taken; 0: it is ours
}

// Timed is implemented by Instances that take their place on the run's axis after they were prepared. Others have the one that
// their Workload named.
type Timed interface {
	// SetTime replaces ZeroUnixNanos and StartNanos of the workload. It is called before Run or not at all.
	SetTime(zeroUnixNanos, startNanos int64)
}
