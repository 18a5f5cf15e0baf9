package hammerdb

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/braggdev/bragg/internal/load/program"
)

// told is what follows a TPROC-C on a server that only HammerDB reaches: it counts the transactions that HammerDB's own counter states.
type told struct {
	*following
	counts *counts
	last   reading // of the counter
}

// driveTold starts the users and counts their transactions until HammerDB has ended.
func (in *instance) driveTold(ctx context.Context, axis program.Axis, out *program.Recorder) error {
	began := axis.Now()
	t := &told{following: &following{instance: in, axis: axis, out: out}, last: reading{at: began}}
	t.counts = newCounts(out, t.last, len(in.config.ownGauges()))
	t.hear = t.listen
	t.until = began + int64(in.config.takes()+resultMax) + int64(userDelay)*int64(in.config.users())
	if in.config.cut {
		t.until = began + int64(in.workload.Runtime)
	}
	if _, err := io.WriteString(in.call.stdin, "start\n"); err != nil {
		out.Finish(axis.Now())
		return fmt.Errorf("start the users of HammerDB: %w", err)
	}
	failed := t.follow(ctx)
	r, _ := in.call.result()
	if r != nil && r.TPM > 0 && !in.config.cut {
		t.counts.own[gaugeShare], t.counts.own[gaugeOrders] = r.NewOrderShare(), float64(r.NOPM)
		out.Gauge(t.counts.own, axis.Now()-1)
	}
	out.Finish(axis.Now())
	switch {
	case t.stopped && !in.config.cut && ctx.Err() == nil:
		return errTooLong
	case t.stopped:
		return nil
	}
	if err := in.call.verdict(); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("HammerDB: %w%s", failed, in.call.last.Quoted())
	}
	if r == nil {
		return errNoResult
	}
	say := func(format string, args ...any) { fmt.Fprintf(in.said, format+"\n", args...) }
	say("result: %d NOPM and %d TPM, as HammerDB counts", r.NOPM, r.TPM)
	in.tellProfile(say)
	return nil
}

// listen counts the transactions between two lines of the counter, which states them per minute.
func (t *told) listen() {
	var o Output
	for _, h := range t.call.take() {
		before := len(o.Counter)
		if err := o.line(h.line); err != nil || len(o.Counter) == before {
			continue
		}
		at, rate := t.axis.Of(h.at), float64(o.Counter[before].TPM)
		next := reading{at: at, orders: t.last.orders + uint64(rate*time.Duration(at-t.last.at).Minutes()+0.5)}
		next.transactions = next.orders
		t.counts.add(next)
		t.counts.own[gaugeRate] = rate
		t.last = next
		t.out.Gauge(t.counts.own, at-1)
	}
	t.known = t.last.at
}
