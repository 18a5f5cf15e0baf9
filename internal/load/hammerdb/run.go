package hammerdb

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
)

// Bounds.
const (
	stopGrace  = 5 * time.Second // between SIGTERM and SIGKILL
	lookEvery  = 200 * time.Millisecond
	holdMax    = 5 * time.Second        // how long an interval waits for a server that does not answer
	readyMax   = 2 * time.Minute        // for HammerDB to load and to make its users
	userDelay  = 500 * time.Millisecond // of HammerDB between the starts of two users
	startMax   = 30 * time.Second       // for the first order, beside the delays of users
	resultMax  = (marginSeconds + 30) * time.Second
	queryMax   = 10 * time.Second // for a single reading
	folder     = "tcl"            // of scripts and temporary files in the room
	outputName = "hammerdb.txt"
)

// instance is one prepared load or prefill.
type instance struct {
	workload load.Workload
	config   *config
	home     string
	versions versions
	server   *server
	series   database.Series
	counter  *counter
	said     *program.Transcript // commands and what they printed
	call     *call               // of a load: HammerDB, which waits for its start
	used     bool
}

var (
	_ load.Describer = (*instance)(nil)
	_ load.Timed     = (*instance)(nil)
	_ load.Teller    = (*instance)(nil)
)

// prepare finds programs and data, starts the server of a load, and lets HammerDB make its users.
func (in *instance) prepare(ctx context.Context) (err error) {
	c := in.config
	if in.home, err = installation.Find(); err != nil {
		return err
	}
	if in.server, err = c.server.open(ctx, &in.workload, Name+c.schema().room, in.said); err != nil {
		return err
	}
	if err := in.probe(ctx); err != nil {
		return err
	}
	if in.workload.Prefill && c.endpoint == "" {
		return nil // it makes the server once it runs
	}
	if err := in.server.Up(ctx); err != nil || in.workload.Prefill {
		return err
	}
	if err := in.checkData(ctx); err != nil {
		return err
	}
	if c.orders != nil && !c.kind.told {
		if in.counter, err = openCounter(ctx, in.server, c.kind.countQuery); err != nil {
			return err
		}
	}
	if in.series, err = in.server.series(ctx); err != nil {
		return err
	}
	if in.call, err = in.start(Run); err != nil {
		return err
	}
	return in.call.ready(ctx)
}

// probe finds the versions of HammerDB and of its library.
func (in *instance) probe(ctx context.Context) error {
	p, err := in.start(Probe)
	if err != nil {
		return err
	}
	failed := p.end(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	text := p.head()
	if in.versions, err = readProbe(in.home, text, in.config.kind.dialect); err != nil {
		return err
	}
	if failed != nil {
		return installation.Missing("HammerDB in %s does not run: %v: %.400s", in.home, failed, strings.TrimSpace(text))
	}
	if t := in.config.orders; t != nil && !t.Procedures && in.versions.foreign {
		return &diag.Error{Code: "bad-generator-option", Exit: diag.ExitData,
			Message: fmt.Sprintf("transactions: functions need HammerDB's own library; its Tcl has Pgtcl %s, with which all of them fail", in.versions.library),
			Hint:    "use transactions: procedures, and build the schema with it"}
	}
	return nil
}

// checkData makes sure that the server has the data of the workload.
func (in *instance) checkData(ctx context.Context) error {
	if in.config.kind.told {
		return in.carryOut(ctx, Check)
	}
	schema := in.config.schema()
	found, err := in.server.Query(ctx, schema.count)
	if err == nil && found == fmt.Sprint(schema.want) {
		return nil
	} else if err != nil && !program.Failed(err) {
		return err
	} else if err != nil {
		found = "no"
	}
	return &diag.Error{Code: "no-database", Exit: diag.ExitData, Err: err,
		Message: fmt.Sprintf("want %d %s, found %s", schema.want, schema.of, found),
		Hint:    "add workload.PrefillRun for this workload, or for one with the same disk and data, before the load"}
}

// Engine describes the programs of this VM; see load.Describer.
func (in *instance) Engine() interval.Engine {
	e := in.config.engine()
	e.Version = in.versions.hammerdb
	if in.config.users() > 1 && in.versions.foreign {
		e.Notes = append(e.Notes, interval.EngineNote{Code: "library-threads",
			Text: fmt.Sprintf("Pgtcl %s is not HammerDB's own, and may crash with more than one user", in.versions.library)})
	}
	in.server.Describe(&e)
	return e
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Outputs has the commands with their output, and the server's log; see load.Teller.
func (in *instance) Outputs() []load.Output { return in.server.Outputs(outputName) }

// Close ends HammerDB and the server, and removes the files of HammerDB, which have the passwords of an endpoint.
func (in *instance) Close() error {
	in.used = true
	in.call.kill()
	in.counter.close()
	if in.series != nil {
		in.series.Close()
	}
	in.call, in.counter, in.series = nil, nil, nil
	if in.server == nil {
		return nil
	}
	if in.server.base.Room != nil {
		_ = os.RemoveAll(in.server.base.Room.Path(folder))
	}
	return in.server.Close()
}

// Run runs the load or the prefill; see load.Instance.
func (in *instance) Run(ctx context.Context, sink load.Sink) error {
	if in.used {
		return fmt.Errorf("run workload %q: it ran before or is closed", in.workload.Name)
	}
	defer func() { _ = in.Close() }()
	axis := program.NewAxis(in.workload.ZeroUnixNanos)
	out := &program.Recorder{Workload: in.workload, Sink: sink, Gauges: interval.UnknownGauges(len(in.config.engine().Gauges))}
	axis.WaitUntil(ctx, in.workload.StartNanos)
	out.Begin(axis.Now())
	if ctx.Err() != nil {
		out.Finish(axis.Now())
		return nil
	}
	var err error
	if in.workload.Prefill {
		err = out.Beside(axis, func() error { return in.build(ctx) })
		out.Finish(axis.Now())
	} else {
		err = in.driver()(ctx, axis, out)
	}
	return program.Outcome(ctx, in.workload.Name, in.server.Conceal(err))
}

// driver carries out loads of the test.
func (in *instance) driver() func(context.Context, program.Axis, *program.Recorder) error {
	switch {
	case in.config.queries != nil:
		return in.driveQueries
	case in.config.kind.told:
		return in.driveTold
	}
	return in.drive
}

// begin returns the first values of the server's series: unknown if another VM asks it.
func (in *instance) begin() interval.GaugeValues {
	if values := in.series.Begin(); values != nil || in.config.endpoint != "" {
		return values
	}
	return interval.UnknownGauges(len(in.config.kind.gauges))
}

// build makes a server or empties the endpoint, builds the schema and checks it.
func (in *instance) build(ctx context.Context) error {
	prepare := in.server.Create
	if in.config.endpoint != "" && !in.config.kind.told {
		prepare = in.empty
	}
	if err := prepare(ctx); err != nil || in.workload.Remove {
		return err
	}
	if in.config.queries != nil && in.server.drop != "" {
		if _, err := in.server.Query(ctx, in.server.drop); err != nil {
			return err
		}
	}
	for _, action := range []Action{Build, Check} {
		if err := in.carryOut(ctx, action); err != nil {
			return err
		}
	}
	in.server.Stop()
	return nil
}

// carryOut builds or checks the schema.
func (in *instance) carryOut(ctx context.Context, action Action) error {
	c, err := in.start(action)
	if err != nil {
		return err
	}
	failed := c.end(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := c.verdict(); err != nil {
		return fmt.Errorf("%s the schema: %w", action, err)
	}
	if failed != nil {
		return fmt.Errorf("%s the schema: HammerDB: %w%s", action, failed, c.last.Quoted())
	}
	return nil
}

// empty removes the tables of the test from an endpoint, and what belongs to them. It refuses a database that has any other table.
func (in *instance) empty(ctx context.Context) error {
	text, err := in.server.Query(ctx, in.server.listing)
	if err != nil || text == "" {
		return err
	}
	found := strings.Fields(text)
	names := strings.Fields(strings.ToLower(text))
	if slices.Sort(names); !slices.Equal(names, in.config.schema().tables) {
		return &diag.Error{Code: "endpoint-in-use", Exit: diag.ExitData, Message: "the database of the endpoint has other tables than those of HammerDB",
			Hint: "name an empty database in the settings of the endpoint"}
	}
	for _, statement := range append([]string{"DROP TABLE " + strings.Join(found, ", ")}, in.server.empty...) {
		if _, err := in.server.Query(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// start starts hammerdbcli with the script of an action. It runs as the user of this process, because an installation may be in a home
// folder, and SQLite, which HammerDB uses in its temporary folder, needs a path that its user can follow from the root.
func (in *instance) start(action Action) (*call, error) {
	room := in.server.base.Room
	if err := room.Clear(folder); err != nil {
		return nil, err
	}
	script := folder + "/" + string(action) + ".tcl"
	if err := room.WriteFile(script, in.config.Script(action)); err != nil {
		return nil, err
	}
	access := in.server.access()
	command := Command(in.home, room.Path(script), room.Path(folder), in.config.kind.dialect, &access)
	variables := command.Env
	command.Env = nil // servers have their own
	command = in.server.Complete(command)
	command.Env = slices.Concat(command.Env, variables)
	command.Account = nil
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	c := &call{stdin: write, last: program.NewTail(nil), said: in.said, isUp: make(chan struct{}), isLost: make(chan struct{}), listens: action == Run && (in.config.queries != nil || in.config.kind.told)}
	command.Stdin, command.Stdout, command.Stderr = read, c, c
	fmt.Fprintf(in.said, "$ hammerdbcli tcl auto %s.tcl\n", action)
	if c.process, err = command.Start(); err != nil {
		_ = write.Close()
		return nil, installation.Missing("start HammerDB in %s: %v", in.home, err)
	}
	return c, nil
}

// drive starts the users and counts their orders until HammerDB has ended.
func (in *instance) drive(ctx context.Context, axis program.Axis, out *program.Recorder) error {
	in.counter.axis = axis
	first := in.counter.read(ctx)
	began := axis.Now()
	if first.err != nil {
		out.Finish(began)
		return first.err
	}
	counted := newCounts(out, first, len(in.config.ownGauges()))
	following, abandon := context.WithCancel(context.WithoutCancel(ctx))
	readings := make(chan reading, 1)
	defer abandon()
	go in.counter.follow(following, out.Period(), readings)
	f := &follower{instance: in, axis: axis, out: out, counts: counted, began: began, server: in.begin()}
	if _, err := io.WriteString(in.call.stdin, "start\n"); err != nil {
		out.Finish(axis.Now())
		return fmt.Errorf("start the users of HammerDB: %w", err)
	}
	err := f.follow(ctx, readings)
	abandon()
	for range readings { // so that the connection is free
	}
	failed := in.call.process.Wait()
	if err == nil { // orders since the last reading
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryMax)
		defer cancel()
		if r := in.counter.read(last); r.err == nil {
			f.count(r)
		}
	}
	if r, _ := in.call.result(); r != nil && r.TPM > 0 && !in.config.cut { // for the audit, which judges the share
		counted.own[gaugeShare] = r.NewOrderShare()
		out.Gauge(counted.gauges(f.server), f.end()-1)
	}
	out.Finish(f.end())
	if err != nil || f.stopped {
		return err
	}
	if err := in.call.verdict(); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("HammerDB: %w%s", failed, in.call.last.Quoted())
	}
	return in.conclude(out.Done)
}
