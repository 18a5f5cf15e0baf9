package pgbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/wait"
)

// Bounds.
const (
	stopGrace  = 10 * time.Second // for transactions in flight, between the alarm and SIGKILL
	lookEvery  = 200 * time.Millisecond
	holdMax    = 30 * time.Second // how long an interval waits for lines that pgbench has not written yet; later ones count in a later interval
	outputMax  = 64 << 10         // of the server's log and of pgbench's own output
	summaryMax = 1 << 20
)

// instance is one prepared load or prefill.
type instance struct {
	workload load.Workload
	config   *config
	commands commands
	room     *room
	access   []string // environment by which clients reach an endpoint: it may hold a password
	version  string   // of pgbench
	database string   // version of the server
	server   *program.Process
	series   *series             // of the server of a load
	said     *program.Transcript // commands and what they printed
	log      *program.Transcript // of the server
	used     bool
	// smallPages: the scenario asks for huge pages, and the server did not get them.
	smallPages bool
}

var (
	_ load.Describer = (*instance)(nil)
	_ load.Timed     = (*instance)(nil)
	_ load.Teller    = (*instance)(nil)
)

// prepare finds programs and data, and starts the server of a load.
func (in *instance) prepare(ctx context.Context) (err error) {
	c := in.config
	c.shrink(in.workload.Scale.Factor)
	in.log = program.NewTranscript(outputMax)
	tools, err := program.Find(ctx, needs(c), folders...)
	if err != nil {
		return err
	}
	if c.endpoint != "" {
		if in.access, err = readEndpoint(c.endpoint); err != nil {
			return err
		}
	}
	in.version = tools["pgbench"].Version
	in.commands = commands{config: c, tools: tools, major: tools["pgbench"].Major(),
		folder: func(disk string) string { return program.Inherited(0) + "/" + of(disk) }}
	if in.room, err = openRoom(&in.workload, c); err != nil {
		return err
	}
	switch {
	case c.endpoint != "":
		if err := in.greet(ctx); err != nil || in.workload.Prefill {
			return err
		}
	case in.workload.Prefill:
		in.database = tools["postgres"].Version
		return nil
	case !in.hasServer():
		return &diag.Error{Code: "no-database", Exit: diag.ExitData, Message: fmt.Sprintf("disk %s has no database", c.disk),
			Hint: "add workload.PrefillRun before the load"}
	default:
		if err := in.startServer(ctx); err != nil {
			return err
		}
		in.database = tools["postgres"].Version
	}
	return in.prepareLoad(ctx)
}

// greet asks the endpoint for its version.
func (in *instance) greet(ctx context.Context) (err error) {
	in.database, err = in.query(ctx, "", "", "SHOW server_version")
	if err != nil {
		return &diag.Error{Code: "endpoint-unreachable", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("reach endpoint %q", in.config.endpoint), Err: err}
	}
	return nil
}

// prepareLoad checks the data and writes the script.
func (in *instance) prepareLoad(ctx context.Context) error {
	if err := in.checkData(ctx); err != nil {
		return err
	}
	// Texts are left out: addresses, paths, and commands and connections of a superuser, which may have passwords.
	if _, err := in.query(ctx, benchRole, database, "SELECT name, setting, unit, source FROM pg_settings"+
		" WHERE source <> 'default' AND vartype <> 'string' AND name <> 'port' ORDER BY name"); err != nil {
		return err
	}
	if in.config.endpoint == "" {
		var err error
		if in.series, err = in.openSeries(ctx); err != nil {
			return err
		}
	}
	if err := in.room.make(of(in.config.disk)); err != nil {
		return err
	}
	if err := in.room.clear(of(in.config.disk) + "/log"); err != nil {
		return err
	}
	for _, s := range in.config.scripts {
		if !s.own {
			continue
		}
		path := filepath.Join(in.logs(), s.name+".sql")
		if err := os.WriteFile(path, []byte(in.workload.Config), 0o600); err != nil {
			return err
		}
		if err := in.room.account.Own(path); err != nil {
			return err
		}
	}
	return nil
}

func (in *instance) logs() string { return filepath.Join(in.room.path, of(in.config.disk), "log") }

// Engine describes the programs of this VM; see load.Describer.
func (in *instance) Engine() interval.Engine {
	e := in.config.engine()
	e.Version, e.Backends = in.version, []string{"PostgreSQL " + in.database}
	if in.smallPages {
		e.Notes = append(e.Notes, interval.EngineNote{Code: "huge-pages", Text: "huge_pages=try, and the system had none to give"})
	}
	return e
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Outputs has the commands with their output, and the server's log; see load.Teller.
func (in *instance) Outputs() []load.Output {
	list := []load.Output{{Name: "pgbench.txt", Text: conceal(in.said.String(), in.access)}}
	if text := in.log.String(); text != "" {
		list = append(list, load.Output{Name: "postgres.log", Text: text})
	}
	return list
}

// Close stops the server.
func (in *instance) Close() error {
	in.used = true
	in.series.close()
	in.series = nil
	in.stopServer()
	err := in.room.close()
	in.room = nil
	return err
}

// Run runs the load or the prefill; see load.Instance.
func (in *instance) Run(ctx context.Context, sink load.Sink) error {
	if in.used {
		return fmt.Errorf("run workload %q: it ran before or is closed", in.workload.Name)
	}
	defer func() { _ = in.Close() }()
	axis := program.NewAxis(in.workload.ZeroUnixNanos)
	out := &program.Recorder{Workload: in.workload, Sink: sink, Rated: in.config.rate > 0, Clients: in.config.clients}
	if in.config.endpoint == "" {
		out.Gauges = unknownGauges()
	}
	if in.workload.StartNanos > 0 {
		_ = wait.For(ctx, time.Duration(in.workload.StartNanos-axis.Now()))
	}
	out.Begin(axis.Now())
	if ctx.Err() != nil {
		out.Finish(axis.Now())
		return nil
	}
	var err error
	if in.workload.Prefill {
		err = in.fill(ctx, axis, out)
	} else {
		err = in.drive(ctx, axis, out)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("run workload %q: %w", in.workload.Name, err)
	}
	return nil
}

// fill initialises the database and reports that time passes.
func (in *instance) fill(ctx context.Context, axis program.Axis, out *program.Recorder) error {
	done := make(chan error, 1)
	go func() { done <- in.initialise(ctx) }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			out.Finish(axis.Now())
			return err
		case <-tick.C:
			out.Release(axis.Now())
		}
	}
}

func (in *instance) initialise(ctx context.Context) error {
	if in.config.endpoint == "" {
		if err := in.createServer(ctx); err != nil {
			return err
		}
	}
	_, err := in.run(ctx, in.commands.initialise())
	in.stopServer()
	return err
}

// drive runs pgbench and follows its logs.
func (in *instance) drive(ctx context.Context, axis program.Axis, out *program.Recorder) error {
	summary := &textio.Head{MaxBytes: summaryMax}
	last := program.NewTail(nil)
	command := in.complete(in.commands.load(in.workload.Runtime))
	command.Stdout, command.Stderr = summary, io.MultiWriter(last, in.said)
	fmt.Fprintf(in.said, "$ %s\n", command)
	if in.series != nil {
		out.Gauges = in.series.begin()
	}
	began, shift := axis.Now(), unixShift(axis)
	p, err := command.Start()
	if err != nil {
		out.Finish(axis.Now())
		return fmt.Errorf("start pgbench: %w", err)
	}
	logs := newLogs(in.logs(), p.ID(), in.config, shift)
	defer logs.close()
	err = in.follow(ctx, p, follower{axis, out, logs, in.series})
	failed, end := p.Wait(), axis.Now()
	if r := in.workload.Runtime; r > 0 && ctx.Err() == nil && err == nil && failed == nil {
		end = max(began, out.First()) + int64(r) // starting and ending take a while, which is not part of the load
	}
	out.Finish(end)
	text := summary.String()
	fmt.Fprint(in.said, text)
	if failed != nil && err == nil {
		err = in.conceal(fmt.Errorf("pgbench: %w%s", failed, last.Quoted()))
	}
	if err != nil {
		return err
	}
	return compare(out, text)
}

// unixShift is what has to be added to Unix time for the axis. pgbench adds a constant to a monotonic clock, so that one look at
// its start is enough.
func unixShift(a program.Axis) int64 {
	now := time.Now()
	return a.Of(now) - now.UnixNano()
}

// follower is what takes the transactions of a running pgbench.
type follower struct {
	axis   program.Axis
	out    *program.Recorder
	logs   *logs
	server *series // nil with an endpoint
}

func (f *follower) look(p *program.Process) error {
	if f.server != nil {
		if values, fresh := f.server.look(f.out.Period()); fresh {
			f.out.Gauge(values, f.axis.Now())
		}
	}
	f.out.Effort(p.UsedCPU(), p.Effort(), f.axis.Now())
	return f.logs.read(f.out.Add)
}

// follow reads the logs until pgbench has ended. Its alarm ends it early: it completes what is in flight and prints its summary.
func (in *instance) follow(ctx context.Context, p *program.Process, f follower) error {
	stop := &program.Stopper{Process: p, Signal: syscall.SIGALRM, Grace: stopGrace}
	defer stop.End()
	over := make(<-chan time.Time)
	if r := in.workload.Runtime; r > 0 && r%time.Second != 0 {
		timer := time.NewTimer(r)
		defer timer.Stop()
		over = timer.C
	}
	tick := time.NewTicker(min(lookEvery, f.out.Period()/2))
	defer tick.Stop()
	cancelled := ctx.Done()
	for {
		select {
		case <-p.Done():
			return f.look(p)
		case <-tick.C:
			if err := f.look(p); err != nil {
				p.Kill()
				<-p.Done()
				return err
			}
			f.out.Release(min(f.axis.Now(), max(f.logs.complete(), f.axis.Now()-int64(holdMax))))
		case <-over:
			over = nil
			stop.Begin()
		case <-cancelled:
			cancelled = nil
			stop.Begin()
		}
	}
}

var errDifferent = errors.New("pgbench's summary and its log differ")

// compare holds the totals of all intervals against the summary.
func compare(r *program.Recorder, text string) error {
	s, err := parseSummary(text)
	if err != nil {
		return err
	}
	if s.processed != r.Done || s.skipped != r.Skipped || s.failed != r.Failed {
		return &diag.Error{Code: "totals-differ", Exit: diag.ExitUndecided, Err: errDifferent,
			Message: fmt.Sprintf("recorded %d transactions, %d skipped, %d failed, and pgbench reports %d, %d, %d",
				r.Done, r.Skipped, r.Failed, s.processed, s.skipped, s.failed)}
	}
	if s.aborted {
		return errors.New("pgbench reports that the run was aborted")
	}
	return nil
}
