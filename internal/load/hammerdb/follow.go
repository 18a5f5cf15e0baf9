package hammerdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/program"
)

// follower is what follows a running load.
type follower struct {
	*instance
	axis    program.Axis
	out     *program.Recorder
	counts  *counts
	began   int64
	server  interval.GaugeValues
	stopped bool // ended by a signal, because its time is over or it was cancelled
}

// over reports whether the time of the load has passed. Its clock begins with the first order.
func (f *follower) over() bool {
	c, runtime := f.config, f.workload.Runtime
	start := f.counts.first
	if start == 0 {
		start = f.began + int64(startMax) + int64(userDelay)*int64(c.orders.Users)
	}
	if !c.cut {
		return f.axis.Now() > start+int64(c.takes()+resultMax) // it should have ended by itself
	}
	return f.axis.Now() >= start+int64(runtime)
}

// end is where the last interval ends: a load of a set time lasts exactly that long, and one that ends by itself until its test was over.
func (f *follower) end() int64 {
	if f.counts.until > 0 && !f.stopped {
		return f.counts.until
	}
	if runtime := f.workload.Runtime; f.stopped && f.counts.first > 0 && runtime > 0 && f.axis.Now() >= f.counts.first+int64(runtime) {
		return f.counts.first + int64(runtime)
	}
	return f.axis.Now()
}

// follow counts until HammerDB has ended. A server that does not answer delays intervals for a while; one that is gone is an error.
func (f *follower) follow(ctx context.Context, readings <-chan reading) (err error) {
	process := f.call.process
	stop := &program.Stopper{Process: process, Signal: syscall.SIGTERM, Grace: stopGrace}
	defer stop.End()
	tick := time.NewTicker(min(lookEvery, f.out.Period()/2))
	defer tick.Stop()
	cancelled := ctx.Done()
	for {
		select {
		case <-process.Done():
			f.look()
			return err
		case r, open := <-readings:
			if !open {
				readings = nil
				break
			}
			if r.err != nil {
				err = r.err
				stop.Begin()
				break
			}
			f.count(r)
			f.look()
		case <-tick.C:
			now := f.axis.Now()
			f.out.Release(min(f.known(now), max(f.counts.last.at, now-int64(holdMax))))
			if f.over() && !f.stopped && err == nil {
				if f.stopped = true; !f.config.cut {
					err = errTooLong
				}
				stop.Begin()
			}
		case <-cancelled:
			cancelled, f.stopped = nil, true
			stop.Begin()
		}
	}
}

// known is up to when intervals can be delivered: none of them begins after the test.
func (f *follower) known(now int64) int64 {
	if f.counts.until > 0 {
		return min(now, f.counts.until-1)
	}
	return now
}

// count takes a reading. After the test, users complete what they have begun.
func (f *follower) count(r reading) {
	if at := f.call.testEnd(); !at.IsZero() && f.counts.until == 0 {
		f.counts.until = max(f.axis.Of(at), f.counts.last.at)
	}
	f.counts.add(r)
}

// look notes the series of the present.
func (f *follower) look() {
	if values, fresh := f.series.Look(f.out.Period()); fresh {
		f.server = values
	}
	p := f.call.process
	f.out.Effort(p.UsedCPU(), p.Effort(), f.axis.Now())
	f.out.Gauge(f.counts.gauges(f.server), f.counts.last.at-1)
}

// conclude holds the result of HammerDB against the orders that were counted, and keeps both.
func (in *instance) conclude(orders uint64) error {
	r, failed := in.call.result()
	if r == nil {
		return errNoResult
	}
	say := func(format string, args ...any) { fmt.Fprintf(in.said, format+"\n", args...) }
	say("result: %d NOPM and %d TPM, as HammerDB counts; %d new orders were counted in the whole load", r.NOPM, r.TPM, orders)
	if failed > 0 {
		say("note: %d transactions failed, which HammerDB counts as others", failed)
	}
	in.tellProfile(say)
	if r.NOPM*uint64(in.config.orders.Minutes) > orders {
		return program.TotalsDiffer("HammerDB reports %d new orders in %d minutes, and the database counted %d in the whole load",
			r.NOPM*uint64(in.config.orders.Minutes), in.config.orders.Minutes, orders)
	}
	return nil
}

// tellProfile keeps the time profile of each user.
func (in *instance) tellProfile(say func(format string, args ...any)) {
	text, err := os.ReadFile(in.server.base.Room.Path(folder, ProfileFile))
	if err != nil {
		say("note: no time profile: %v", errors.Unwrap(err))
		return
	}
	users, err := ParseProfile(string(text))
	if err != nil {
		say("note: %v", err)
		return
	}
	sampled := false
	for _, u := range users {
		for _, p := range u.Procedures {
			sampled = sampled || p.Sampled
			say("user %d %s: %d calls, mean %v, p50 %v, p95 %v, p99 %v, max %v", u.User, p.Name, p.Calls, p.Mean, p.P50, p.P95, p.P99, p.Max)
		}
	}
	if sampled {
		say("note: percentiles are those of a random sample of the calls, of %d unless HammerDB's xt_reservoir is larger or 0", sampleLeast)
	}
}
