package commitlatency

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/postgres"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/wait"
)

// table holds the rows of commits.
const table = "bragg_commits"

// Bounds.
const (
	lookEvery = 200 * time.Millisecond
	stopGrace = 10 * time.Second // for the operation in flight
)

// instance is one prepared load or prefill.
type instance struct {
	workload load.Workload
	config   *config
	server   *postgres.Server
	series   *postgres.Series
	prober   *prober // of a load
	said     *program.Transcript
	used     bool
}

var (
	_ load.Describer = (*instance)(nil)
	_ load.Timed     = (*instance)(nil)
)

func (in *instance) prepare(ctx context.Context) (err error) {
	c := in.config
	if in.server, err = c.server.Open(ctx, &in.workload, postgres.Use{Name: Name, Said: in.said}); err != nil {
		return err
	}
	if in.workload.Prefill && c.server.Endpoint == "" {
		return nil // it makes the server once it runs
	}
	if err := in.server.Up(ctx); err != nil || in.workload.Prefill {
		return err
	}
	if found, err := in.server.Query(ctx, "SELECT to_regclass('"+table+"')"); err != nil {
		return err
	} else if found == "" {
		return &diag.Error{Code: "no-database", Exit: diag.ExitData, Message: "the database has no table " + table,
			Hint: "add workload.PrefillRun for this workload before the load"}
	}
	if in.series, err = in.server.OpenSeries(ctx); err != nil {
		return err
	}
	in.prober, err = openProber(ctx, c, in.server)
	return err
}

// Engine describes the server of this VM; see load.Describer.
func (in *instance) Engine() interval.Engine {
	e := in.config.engine()
	in.server.Describe(&e)
	return e
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Outputs has the commands with their output, and the server's log.
func (in *instance) Outputs() []load.Output { return in.server.Outputs("commit-latency.txt") }

// Close stops the server.
func (in *instance) Close() error {
	in.used = true
	in.prober.close()
	in.series.Close()
	in.prober, in.series = nil, nil
	return in.server.Close()
}

// Run runs the load or the prefill; see load.Instance.
func (in *instance) Run(ctx context.Context, sink load.Sink) error {
	if in.used {
		return fmt.Errorf("run workload %q: it ran before or is closed", in.workload.Name)
	}
	defer func() { _ = in.Close() }()
	axis := program.NewAxis(in.workload.ZeroUnixNanos)
	out := &program.Recorder{Workload: in.workload, Sink: sink, Clients: 1, Gauges: interval.UnknownGauges(len(in.config.engine().Gauges))}
	axis.WaitUntil(ctx, in.workload.StartNanos)
	out.Begin(axis.Now())
	var err error
	switch {
	case ctx.Err() != nil:
		out.Finish(axis.Now())
	case in.workload.Prefill:
		err = out.Beside(axis, func() error { return in.fill(ctx) })
		out.Finish(axis.Now())
	default:
		err = in.measure(ctx, axis, out)
	}
	return program.Outcome(ctx, in.workload.Name, err)
}

// fill makes the table, and the file of bare writes.
func (in *instance) fill(ctx context.Context) error {
	if in.config.server.Endpoint == "" {
		if err := in.server.Create(ctx); err != nil {
			return err
		}
		if err := makeBare(barePath(in.config, in.server)); err != nil {
			return err
		}
	}
	statements := []string{"DROP TABLE IF EXISTS " + table, "CREATE TABLE " + table + " (at timestamptz NOT NULL DEFAULT now(), content bytea NOT NULL)"}
	if in.workload.Remove {
		statements = statements[:1]
	}
	for _, statement := range statements {
		if _, err := in.server.Query(ctx, statement); err != nil {
			return err
		}
	}
	in.server.Stop()
	return nil
}

// measure lets the prober run beside the clock of the intervals, so that they are delivered while an operation hangs.
func (in *instance) measure(ctx context.Context, axis program.Axis, out *program.Recorder) error {
	began := axis.Now()
	end := int64(math.MaxInt64)
	if in.workload.Runtime > 0 {
		end = began + int64(in.workload.Runtime)
	}
	working, abandon := wait.Outlasting(ctx, stopGrace)
	defer abandon()
	done := make(chan error, 1)
	operations := make(chan program.Operation, 1024)
	go func() {
		defer close(operations)
		done <- in.prober.run(working, operations, axis, func() bool { return ctx.Err() == nil && axis.Now() < end })
	}()
	w := newWaiting(in.config.operations, in.series.Begin())
	tick := time.NewTicker(min(lookEvery, out.Period()/2))
	defer tick.Stop()
	for operations != nil {
		select {
		case o, open := <-operations:
			if !open {
				operations = nil
				break
			}
			if o.Failed == "" {
				w.add(out, o)
			}
			out.Add(o)
		case <-tick.C:
			if values, fresh := in.series.Look(out.Period()); fresh {
				w.server = values
			}
			w.note(out, axis.Now())
			out.Release(axis.Now() - int64(lookEvery))
		}
	}
	err := <-done
	stop := axis.Now()
	if in.workload.Runtime > 0 && err == nil && ctx.Err() == nil {
		stop = max(began, out.First()) + int64(in.workload.Runtime)
	}
	w.end(out)
	out.Finish(stop)
	return err
}
