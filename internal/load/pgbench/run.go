package pgbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/postgres"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/textio"
)

// Bounds.
const (
	stopGrace  = 10 * time.Second // for transactions in flight, between the alarm and SIGKILL
	lookEvery  = 200 * time.Millisecond
	holdMax    = 30 * time.Second // how long an interval waits for lines that pgbench has not written yet; later ones count in a later interval
	summaryMax = 1 << 20          // bytes of pgbench's own output
)

// instance is one prepared load or prefill.
type instance struct {
	workload load.Workload
	config   *config
	commands commands
	server   *postgres.Server
	series   *postgres.Series    // of the server of a load
	said     *program.Transcript // commands and what they printed
	history  *history            // nil if its rows do not count transactions
	log      string              // folder of the transaction logs in the room
	used     bool
}

var (
	_ load.Describer = (*instance)(nil)
	_ load.Timed     = (*instance)(nil)
	_ load.Teller    = (*instance)(nil)
)

// prepare finds programs and data, and starts the server of a load.
func (in *instance) prepare(ctx context.Context) (err error) {
	c := in.config
	in.server, err = c.server.Open(ctx, &in.workload, postgres.Use{Name: Name, Needs: []load.Need{postgres.Client("pgbench")}, Said: in.said})
	if err != nil {
		return err
	}
	in.commands = commands{Commands: in.server.Commands, config: c, major: in.server.Tool("pgbench").Major()}
	if in.workload.Prefill && c.server.Endpoint == "" {
		return nil // it makes the server once it runs
	}
	if err := in.server.Up(ctx); err != nil || in.workload.Prefill {
		return err
	}
	if err := in.checkData(ctx); err != nil {
		return err
	}
	if in.series, err = in.server.OpenSeries(ctx); err != nil {
		return err
	}
	if in.history, err = in.openHistory(ctx); err != nil {
		return err
	}
	return in.makeLog()
}

// makeLog makes an empty folder for transaction logs, with the workload's own script.
func (in *instance) makeLog() error {
	disk := program.DiskFolder(in.config.server.Disk)
	in.log = disk + "/log"
	if err := in.server.Room.Make(disk); err != nil {
		return err
	}
	if err := in.server.Room.Clear(in.log); err != nil {
		return err
	}
	for _, s := range in.config.scripts {
		if s.own {
			return in.server.Room.WriteFile(in.log+"/"+s.name+".sql", in.workload.Config)
		}
	}
	return nil
}

// checkData makes sure that the server has the data of the workload.
func (in *instance) checkData(ctx context.Context) error {
	if in.config.server.Endpoint != "" && in.config.ownScript() {
		return nil
	}
	missing := func(found string, err error) error {
		return &diag.Error{Code: "no-database", Exit: diag.ExitData, Err: err,
			Message: fmt.Sprintf("want data of scale %d, found %s", in.config.scale, found),
			Hint:    "add workload.PrefillRun for this workload, or for one with the same disk and scale, before the load"}
	}
	text, err := in.server.Query(ctx, "SELECT count(*) FROM pgbench_branches WHERE to_regclass('pgbench_accounts_pkey') IS NOT NULL") // made last
	if program.Failed(err) {
		return missing("none", err)
	} else if err != nil {
		return err
	}
	if n, err := strconv.Atoi(text); err != nil || n != in.config.scale && in.config.scale != 0 {
		return missing("scale "+text, nil)
	}
	return nil
}

// Engine describes the programs of this VM; see load.Describer.
func (in *instance) Engine() interval.Engine {
	e := in.config.engine()
	e.Version = in.server.Tool("pgbench").Version
	in.server.Describe(&e)
	return e
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Outputs has the commands with their output, and the server's log; see load.Teller.
func (in *instance) Outputs() []load.Output { return in.server.Outputs("pgbench.txt") }

// Close stops the server.
func (in *instance) Close() error {
	in.used = true
	in.series.Close()
	in.series = nil
	return in.server.Close()
}

// Run runs the load or the prefill; see load.Instance.
func (in *instance) Run(ctx context.Context, sink load.Sink) error {
	if in.used {
		return fmt.Errorf("run workload %q: it ran before or is closed", in.workload.Name)
	}
	defer func() { _ = in.Close() }()
	axis := program.NewAxis(in.workload.ZeroUnixNanos)
	out := &program.Recorder{Workload: in.workload, Sink: sink, Rated: in.config.rate > 0, Clients: in.config.clients}
	if in.config.server.Endpoint == "" {
		out.Gauges = interval.UnknownGauges(len(postgres.Gauges))
	}
	axis.WaitUntil(ctx, in.workload.StartNanos)
	out.Begin(axis.Now())
	if ctx.Err() != nil {
		out.Finish(axis.Now())
		return nil
	}
	var err error
	if in.workload.Prefill {
		err = out.Beside(axis, func() error { return in.initialise(ctx) })
		out.Finish(axis.Now())
	} else {
		err = in.drive(ctx, axis, out)
	}
	return program.Outcome(ctx, in.workload.Name, err)
}

func (in *instance) initialise(ctx context.Context) error {
	if in.config.server.Endpoint == "" {
		if err := in.server.Create(ctx); err != nil {
			return err
		}
	}
	command := in.commands.initialise()
	if in.workload.Remove {
		command = in.commands.remove()
	}
	_, err := in.server.Run(ctx, command)
	in.server.Stop()
	return err
}

// drive runs pgbench and follows its logs.
func (in *instance) drive(ctx context.Context, axis program.Axis, out *program.Recorder) error {
	summary := &textio.Head{MaxBytes: summaryMax}
	last := program.NewTail(nil)
	command := in.server.Complete(in.commands.load(in.workload.Runtime))
	command.Stdout, command.Stderr = summary, io.MultiWriter(last, in.said)
	fmt.Fprintf(in.said, "$ %s\n", command)
	if in.series != nil {
		out.Gauges = in.series.Begin()
	}
	began, shift := axis.Now(), unixShift(axis)
	p, err := command.Start()
	if err != nil {
		out.Finish(axis.Now())
		return fmt.Errorf("start pgbench: %w", err)
	}
	logs := newLogs(in.server.Room.Path(in.log), p.ID(), in.config, shift)
	defer logs.close()
	stopped, err := in.follow(ctx, p, follower{axis, out, logs, in.series})
	failed, end := p.Wait(), axis.Now()
	if r := int64(in.workload.Runtime); r > 0 && ctx.Err() == nil && err == nil && failed == nil {
		// Starting and ending take a while, which is not part of the load. pgbench may end before all of its time has passed since the
		// first transaction: it counts the time of connecting, and a signal ends it without a word.
		end = min(end, max(began, out.First())+r)
	}
	lost := ""
	if program.Killed(failed) {
		if lost = "; transactions that it had not yet written to its log are not recorded"; out.First() > 0 {
			end = 0 // the record ends with the last transaction: no more were written, which is not to say that there were none
		}
	}
	if failed == nil && err == nil {
		in.noteWaiting(out, logs.neverBegun(cmp.Or(stopped, began+int64(in.workload.Runtime))))
	}
	out.Finish(end)
	text := summary.String()
	fmt.Fprint(in.said, text)
	if failed != nil && ctx.Err() != nil {
		fmt.Fprintf(in.said, "note: pgbench was stopped and ended with %v%s\n", failed, lost)
	}
	if failed != nil && err == nil {
		err = in.server.Conceal(fmt.Errorf("pgbench: %w%s%s", failed, lost, last.Quoted()))
	}
	if err != nil {
		return err
	}
	if err := compare(out, text); err != nil {
		return err
	}
	return in.checkHistory(context.WithoutCancel(ctx), in.history, out.Done)
}

// noteWaiting gives the last interval the transactions that were due and not begun.
func (in *instance) noteWaiting(out *program.Recorder, waiting uint64) {
	if waiting == 0 {
		return
	}
	out.Sink = &ending{out.Sink, waiting}
	fmt.Fprintf(in.said, "note: about %d transactions were due at the end and had not begun: by the rate and the last intended start of each thread; pgbench does not count them\n", waiting)
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
	server *postgres.Series // nil if this load does not ask its server
}

func (f *follower) look(p *program.Process) error {
	if values, fresh := f.server.Look(f.out.Period()); fresh {
		f.out.Gauge(values, f.axis.Now())
	}
	f.out.Effort(p.UsedCPU(), p.Effort(), f.axis.Now())
	return f.logs.read(f.out.Add)
}

// follow reads the logs until pgbench has ended. Its alarm ends it early: it completes what is in flight and prints its summary. Stopped is when
// that was, 0 if the alarm was pgbench's own.
func (in *instance) follow(ctx context.Context, p *program.Process, f follower) (stopped int64, err error) {
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
			return stopped, f.look(p)
		case <-tick.C:
			if err := f.look(p); err != nil {
				p.Kill()
				<-p.Done()
				return stopped, err
			}
			f.out.Release(min(f.axis.Now(), max(f.logs.complete(), f.axis.Now()-int64(holdMax))))
		case <-over:
			over, stopped = nil, cmp.Or(stopped, f.axis.Now())
			stop.Begin()
		case <-cancelled:
			cancelled, stopped = nil, cmp.Or(stopped, f.axis.Now())
			stop.Begin()
		}
	}
}

// compare holds the totals of all intervals against the summary.
func compare(r *program.Recorder, text string) error {
	s, err := parseSummary(text)
	if err != nil {
		return err
	}
	if s.processed != r.Done || s.skipped != r.Skipped || s.failed != r.Failed {
		return program.TotalsDiffer("recorded %d transactions, %d skipped, %d failed, and pgbench reports %d, %d, %d",
			r.Done, r.Skipped, r.Failed, s.processed, s.skipped, s.failed)
	}
	if s.aborted {
		return errors.New("pgbench reports that the run was aborted")
	}
	return nil
}
