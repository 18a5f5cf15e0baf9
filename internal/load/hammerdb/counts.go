package hammerdb

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/wait"
)

// reading has the counters of the database at a time of the run's axis.
type reading struct {
	at           int64
	orders       uint64
	transactions uint64 // committed and rolled back
	err          error
}

// counter reads the counters over one connection. Only one goroutine uses it at a time.
type counter struct {
	conn connection
	axis program.Axis
}

func openCounter(ctx context.Context, s *server, query string) (*counter, error) {
	conn, err := s.connect(ctx, query)
	if err != nil {
		if conn != nil {
			conn.Close()
		}
		return nil, fmt.Errorf("count orders: %w", err)
	}
	return &counter{conn: conn}, nil
}

func (c *counter) close() {
	if c != nil {
		c.conn.Close()
	}
}

func (c *counter) read(ctx context.Context) (r reading) {
	began := c.axis.Now()
	row, err := c.conn.ask(ctx)
	r.at = began + (c.axis.Now()-began)/2
	if err == nil && len(row) == 2 {
		if r.orders, err = strconv.ParseUint(row[0], 10, 63); err == nil {
			r.transactions, err = strconv.ParseUint(row[1], 10, 63)
		}
	}
	if err != nil {
		r.err = fmt.Errorf("count orders: %w", err)
	}
	return r
}

// follow reads at the boundaries of intervals until ctx ends or a reading fails, and closes the channel.
func (c *counter) follow(ctx context.Context, period time.Duration, to chan<- reading) {
	defer close(to)
	for {
		now := c.axis.Now()
		if wait.For(ctx, period-time.Duration(now%int64(period))) != nil {
			return
		}
		r := c.read(ctx)
		if ctx.Err() != nil {
			return
		}
		if to <- r; r.err != nil {
			return
		}
	}
}

// Places of gauges in ownGauges.
const (
	gaugeRate = iota
	gaugeShare
	gaugeOrders // where HammerDB alone counts
)

// counts turns readings into operations.
type counts struct {
	out   *program.Recorder
	last  reading
	first int64 // reading before the first order, 0 until there is one
	// own are the gauges of HammerDB, as ownGauges has them: transactions per minute, and the share of new orders in those of its result.
	// They are NaN before they are known.
	own interval.GaugeValues
	// until is when the test was over, 0 before: later readings are of that time.
	until int64
}

// add counts what was completed since the reading before. Orders between two readings are spread evenly over the intervals between them.
func (c *counts) add(r reading) {
	before, taken := c.last, r.at
	if c.until > 0 {
		r.at = max(min(r.at, c.until), before.at)
	}
	c.last = r
	if r.orders < before.orders || taken <= before.at {
		return
	}
	n := r.orders - before.orders
	if n > 0 && c.first == 0 {
		c.first = before.at
	}
	if r.at == before.at {
		c.out.Count(0, r.at-1, n, 0)
		return
	}
	if r.transactions >= before.transactions && (c.until == 0 || r.at-before.at > int64(c.out.Period())/2) {
		c.own[gaugeRate] = float64(r.transactions-before.transactions) / time.Duration(r.at-before.at).Minutes()
	}
	period := int64(c.out.Period())
	for at, counted := before.at, uint64(0); ; {
		end := min((at/period+1)*period, r.at)
		upTo := uint64(float64(n) * float64(end-before.at) / float64(r.at-before.at))
		if end == r.at {
			upTo = n
		}
		c.out.Count(0, end-1, upTo-counted, 0)
		if at, counted = end, upTo; at >= r.at {
			return
		}
	}
}

// gauges has the series of an interval: its own and those of the server.
func (c *counts) gauges(server interval.GaugeValues) interval.GaugeValues {
	return slices.Concat(c.own, server)
}

func newCounts(out *program.Recorder, first reading, own int) *counts {
	return &counts{out: out, last: first, own: interval.UnknownGauges(own)}
}
