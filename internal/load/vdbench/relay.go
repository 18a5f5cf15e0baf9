package vdbench

import (
	"context"
	"errors"
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// relay joins the intervals of several runs to those of one load. Only one goroutine at a time uses it.
type relay struct {
	sink      load.Sink
	rated     bool // the load has response times
	period    int64
	errorsMax uint64

	number     int // of the run
	total      *total
	cancel     context.CancelCauseFunc
	errors     uint64
	held       *interval.Interval // the last one of a run, which may be that of the load
	like       interval.Interval  // identity
	sequence   int64
	first, end int64 // of the load so far
	checked    int64 // intervals of vdbench at whose end maxdata was looked at
}

var errEnough = errors.New("the data of the run is done")

// begin starts a run; without a total it is a prefill.
func (r *relay) begin(t *total, cancel context.CancelCauseFunc) {
	if r.total, r.cancel, r.checked = t, cancel, 0; t != nil {
		r.number++
	}
}

// Interval takes an interval of the current run; see load.Sink.
func (r *relay) Interval(iv interval.Interval) {
	r.release()
	if r.like.Workload == "" {
		r.first = iv.StartNanos
	} else if iv.StartNanos > r.end {
		r.idle(iv.StartNanos)
	}
	r.like = interval.Interval{Workload: iv.Workload, Group: iv.Group, VM: iv.VM, Instance: iv.Instance, Prefill: iv.Prefill}
	if r.end = iv.EndNanos(); r.rated {
		for d := range iv.Directions {
			if t := &iv.Directions[d]; t.Response == nil && t.Service != nil {
				t.Response = t.Service.Clone() // a closed loop: no operation waits before its start
			}
		}
	}
	if r.total != nil {
		r.total.add(&iv)
		r.limits(&iv)
	}
	if iv.Final {
		r.held = &iv
		return
	}
	r.deliver(iv)
}

// limits ends the run or the load that has moved enough data, or had too many errors.
func (r *relay) limits(iv *interval.Interval) {
	for d := range iv.Directions {
		r.errors += iv.Directions[d].ErrorCount()
	}
	run := r.total.run
	if r.errors >= r.errorsMax {
		r.cancel(&diag.Error{Code: "data-errors", Exit: diag.ExitUndecided, Message: fmt.Sprintf("%d operations failed, and data_errors allows fewer than %d", r.errors, r.errorsMax)})
	}
	if passed := (iv.EndNanos() - r.total.start) / max(1, int64(run.interval)); run.maxData > 0 && passed > r.checked {
		if r.checked = passed; float64(r.total.all.bytes) >= run.maxData {
			r.cancel(errEnough)
		}
	}
}

// deliver hands an interval on, with its number in the load.
func (r *relay) deliver(iv interval.Interval) {
	iv.Gauges = interval.GaugeValues{float64(r.number)}
	r.deliverBetween(iv)
}

// deliverBetween hands on an interval that belongs to no run, or has its number.
func (r *relay) deliverBetween(iv interval.Interval) {
	iv.Sequence = r.sequence
	if iv.Gauges == nil {
		iv.Gauges = interval.UnknownGauges(1)
	}
	r.sequence++
	r.sink.Interval(iv)
}

// release delivers the last interval of a run that another one follows. What it left undone is not issued any more.
func (r *relay) release() {
	if r.held == nil {
		return
	}
	iv := *r.held
	r.held, iv.Final = nil, false
	iv.NotIssued, iv.Backlog = iv.NotIssued+iv.Backlog, 0
	r.deliver(iv)
}

// idle delivers intervals without traffic up to a time.
func (r *relay) idle(until int64) {
	for r.end < until && r.like.Workload != "" {
		next := min((r.end/r.period+1)*r.period, until)
		r.release()
		iv := r.like
		iv.StartNanos, iv.LengthNanos = r.end, next-r.end
		r.end = next
		r.deliverBetween(iv)
	}
}

// finish delivers the last interval of the load.
func (r *relay) finish() {
	if r.held != nil {
		r.deliver(*r.held)
		r.held = nil
		return
	}
	if r.like.Workload != "" {
		iv := r.like
		iv.StartNanos, iv.Final = r.end, true
		r.deliver(iv)
	}
}
