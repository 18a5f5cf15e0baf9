package hammerdb

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/program"
)

// Places of gauges behind those of the queries.
const (
	gaugeMean = queryCount + iota
	gaugeSet
	gaugesOfQueries
)

// queryGauges are the last time of each query, and what HammerDB states of the last set.
func queryGauges() []interval.Gauge {
	list := make([]interval.Gauge, 0, gaugesOfQueries)
	for n := range queryCount {
		list = append(list, interval.Gauge{Name: "query " + strconv.Itoa(n+1), Unit: "s"})
	}
	return append(list, interval.Gauge{Name: "geometric mean of queries", Unit: "s"}, interval.Gauge{Name: "query set", Unit: "s"})
}

// querying is what follows a running load of queries.
type querying struct {
	*following
	sets   Sets
	own    interval.GaugeValues
	server interval.GaugeValues
}

// driveQueries starts the users and records their queries until HammerDB has ended.
func (in *instance) driveQueries(ctx context.Context, axis program.Axis, out *program.Recorder) error {
	q := &querying{following: &following{instance: in, axis: axis, out: out}, own: interval.UnknownGauges(gaugesOfQueries), server: in.begin()}
	q.hear = q.listen
	out.Clients = in.config.users()
	began := axis.Now()
	if runtime := int64(in.workload.Runtime); runtime > 0 {
		q.until = began + runtime
	}
	if _, err := io.WriteString(in.call.stdin, "start\n"); err != nil {
		out.Finish(axis.Now())
		return fmt.Errorf("start the users of HammerDB: %w", err)
	}
	failed := q.follow(ctx)
	end := axis.Now()
	if q.stopped && q.until > 0 {
		end = min(end, max(q.until, out.First()))
	}
	out.Finish(end)
	if q.stopped {
		return nil
	}
	if err := in.call.verdict(); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("HammerDB: %w%s", failed, in.call.last.Quoted())
	}
	return q.conclude()
}

// listen records what HammerDB has said.
func (q *querying) listen() {
	if values, fresh := q.series.Look(q.out.Period()); fresh {
		q.server = values
		q.note(q.axis.Now())
	}
	for _, h := range q.call.take() {
		at := q.axis.Of(h.at)
		query, set := q.sets.Line(h.line)
		if query != nil {
			q.out.Add(program.Operation{End: at, Latency: int64(query.Time)})
			q.own[query.Number-1] = query.Time.Seconds()
			q.note(at)
		}
		if set != nil {
			q.own[gaugeMean], q.own[gaugeSet] = set.Stated(), set.Wall.Seconds()
			q.note(at)
		}
	}
}

func (q *querying) note(at int64) { q.out.Gauge(slices.Concat(q.own, q.server), at) }

// conclude holds what HammerDB says of its sets against the queries, and keeps both.
func (q *querying) conclude() error {
	t := q.config.queries
	if want := t.Users * t.Sets; len(q.sets.Done) != want {
		return fmt.Errorf("HammerDB completed %d sets of queries, want %d", len(q.sets.Done), want)
	}
	for _, s := range q.sets.Done {
		fmt.Fprintf(q.said, "set %d of user %d: %d queries in %v, geometric mean of %d with rows %.5f s\n",
			s.Number, s.User, len(s.Queries), s.Wall, s.Returned, s.Stated())
		if err := s.Check(); err != nil {
			return err
		}
	}
	return nil
}
