// Package simdb is a load generator without I/O and without a database: it draws random end times and latencies of
// transactions. It shows that a generator may count operations of any kind, and lets tests run one through a whole
// scenario.
//
//	Workload ──Prepare──▶ connections, each with the end of its next transaction ──Run──▶ Intervals
package simdb

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/stat"
)

// Kind is its registration.
var Kind = load.Kind{Name: "simdb", Summary: "simulated transactions, for tests", Generator: Generator{}}

// Generator simulates transactions.
type Generator struct{}

var _ load.Generator = Generator{}

// OptionConnections is the number of concurrent transactions.
const OptionConnections = "connections"

const (
	connectionsDefault = 8
	connectionsMax     = 10_000
	// transactionMean is how long a transaction takes on average.
	transactionMean = 4 * time.Millisecond
	// transactionsAlone is the number of transactions of each connection without a runtime.
	transactionsAlone = 100
)

// engine is the same on every machine.
func engine() interval.Engine {
	return interval.Engine{
		Name: "simdb", Loop: interval.LoopClosed, Operations: []string{"new-order", "payment", "order-status", "delivery"},
		Gauges: []interval.Gauge{{Name: "buffer hits", Unit: "%"}, {Name: "connections"}},
		Notes:  []interval.EngineNote{{Code: "simulated", Text: "no database answers"}},
	}
}

// mix is the share of all transactions up to each kind, in the order of the engine's operations.
var mix = [...]float64{0.45, 0.88, 0.96, 1}

func connections(w *load.Workload) (int, error) {
	for _, name := range slices.Sorted(maps.Keys(w.Options)) {
		if name != OptionConnections {
			return 0, &diag.Error{Code: "bad-generator-option", Exit: diag.ExitData,
				Message: fmt.Sprintf("generator %q has no option %q", Kind.Name, name), Hint: "it has " + OptionConnections}
		}
	}
	text, given := w.Options[OptionConnections]
	if !given {
		return connectionsDefault, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > connectionsMax {
		return 0, &diag.Error{Code: "bad-generator-option", Exit: diag.ExitData,
			Message: fmt.Sprintf("invalid %s: %q", OptionConnections, text),
			Hint:    fmt.Sprintf("from 1 to %d", connectionsMax)}
	}
	return n, nil
}

// Plan returns what would be simulated.
func (Generator) Plan(w load.Workload) (load.Plan, error) {
	n, err := connections(&w)
	if err != nil {
		return load.Plan{}, err
	}
	return load.Plan{Engine: engine(), Jobs: []load.JobPlan{{Name: "transactions", Pattern: "OLTP", QueueDepth: n, Clones: 1}}}, nil
}

// Prepare draws the first transaction of each connection.
func (Generator) Prepare(_ context.Context, w load.Workload) (load.Instance, error) {
	n, err := connections(&w)
	if err != nil {
		return nil, err
	}
	key := w.Seed
	for _, part := range []int{w.Number, w.Ordinal, w.Instance} {
		key = load.Key(key, uint64(part))
	}
	in := &instance{workload: w}
	for i := range n {
		in.connections = append(in.connections, connection{key: load.Key(key, uint64(i))})
	}
	return in, nil
}

type instance struct {
	workload    load.Workload
	connections []connection
}

// connection runs one transaction after another.
type connection struct {
	key   uint64
	count uint64
	end   int64 // of its next transaction, on the run's axis
	took  int64 // that transaction
}

func (c *connection) begin() {
	c.took = 1 + int64(-math.Log(1-load.DrawUnit(c.key, 2*c.count))*float64(transactionMean))
	c.end += c.took
}

// Engine describes the engine of the load; see load.Describer.
func (in *instance) Engine() interval.Engine { return engine() }

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Close has nothing to release.
func (in *instance) Close() error { return nil }

// Run lets time pass and reports the transactions simulated in it; see load.Instance.
func (in *instance) Run(ctx context.Context, sink load.Sink) error {
	w, base := &in.workload, time.Now()
	offset := int64(0)
	if w.ZeroUnixNanos != 0 {
		offset = base.UnixNano() - w.ZeroUnixNanos
	}
	now := func() int64 { return offset + int64(time.Since(base)) }
	period := int64(w.IntervalLength)
	if period <= 0 {
		period = int64(time.Second)
	}
	wait(ctx, time.Duration(w.StartNanos-now()))
	at := now()
	end := int64(math.MaxInt64)
	if w.Runtime > 0 {
		end = at + int64(w.Runtime)
	}
	for i := range in.connections {
		in.connections[i].end = at
		in.connections[i].begin()
	}
	for sequence := int64(0); ; sequence++ {
		next := min((at/period+1)*period, end)
		wait(ctx, time.Duration(next-now()))
		if ctx.Err() != nil {
			next = max(at, min(next, now()))
		}
		iv := in.imagine(at, next)
		iv.Sequence = sequence
		iv.Final = ctx.Err() != nil || next >= end || w.Runtime == 0 && in.done()
		sink.Interval(iv)
		if iv.Final {
			return nil
		}
		at = next
	}
}

func (in *instance) done() bool {
	return !slices.ContainsFunc(in.connections, func(c connection) bool { return c.count < transactionsAlone })
}

// imagine returns the simulated transactions that ended between two times.
func (in *instance) imagine(from, to int64) interval.Interval {
	w := &in.workload
	iv := interval.Interval{Workload: w.Name, Group: w.Group, VM: w.VM, Instance: w.Instance, Prefill: w.Prefill,
		StartNanos: from, LengthNanos: to - from, InFlight: uint64(len(in.connections)),
		Gauges: []float64{90 + 9*load.DrawUnit(w.Seed, uint64(from)), float64(len(in.connections))}}
	for i := range in.connections {
		c := &in.connections[i]
		for ; c.end < to && (w.Runtime > 0 || c.count < transactionsAlone); c.begin() {
			drawn := load.DrawUnit(c.key, 2*c.count+1)
			t := &iv.Directions[slices.IndexFunc(mix[:], func(share float64) bool { return drawn < share })]
			if t.Service == nil {
				t.Service = &stat.Histogram{}
			}
			t.Operations++
			t.Service.Record(uint64(c.took))
			c.count++
		}
	}
	return iv
}

func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
