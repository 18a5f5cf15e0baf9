package session

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/wait"
)

const (
	// pulseEvery is how often this program looks whether it runs.
	pulseEvery = 250 * time.Millisecond
	// pausedMin is the shortest gap between two polls that counts as a pause. A machine that is merely busy does not cause
	// gaps this long.
	pausedMin = 3 * time.Second
)

// watchPauses records when this program did not run: it was stopped by a signal, or its machine slept. Agents went on meanwhile,
// and nothing was received, polled or switched.
func (x *execution) watchPauses(ctx context.Context) {
	last := now()
	wait.Every(ctx, pulseEvery, func() {
		next := now()
		if e, paused := pauseBetween(last, next); paused {
			e.AtNanos = x.record.now()
			x.record.Event(e)
		}
		last = next
	})
}

// pulse is one reading of the clocks: the monotonic one stops while the machine sleeps.
type pulse struct {
	running time.Time
	asleep  time.Duration // how much of the time since the machine's start it slept
}

// now looks at the clocks.
func now() pulse {
	p := pulse{running: time.Now()}
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) == nil && unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) == nil {
		p.asleep = time.Duration(boot.Nano() - mono.Nano())
	}
	return p
}

// pauseBetween reports whether this program stood still between two looks.
func pauseBetween(last, next pulse) (interval.Event, bool) {
	slept := next.asleep - last.asleep
	stopped := next.running.Sub(last.running)
	if slept+stopped < pausedMin {
		return interval.Event{}, false
	}
	e := interval.Event{Kind: interval.EventPaused, Subject: interval.Controller, SpanNanos: int64(stopped), UncertainNanos: int64(pulseEvery)}
	// The run's time axis stops while the machine sleeps, so that time is only in the message.
	why := "it was stopped, as by a signal or a debugger"
	if slept > stopped {
		why = "its machine slept"
	}
	e.Message = fmt.Sprintf("this program was paused for %s: %s; loads went on, and nothing was received, polled or switched",
		unit.FormatDuration(slept+stopped), why)
	return e, true
}
