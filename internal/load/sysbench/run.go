package sysbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/textio"
)

// Bounds.
const (
	stopGrace    = 10 * time.Second // for sysbench's totals, between the alarm and SIGKILL
	summaryMax   = 1 << 20
	lineBytesMax = 64 << 10
	tickEvery    = time.Second
	lookEvery    = 100 * time.Millisecond // for an answer of the server
)

// instance is one prepared load or prefill.
type instance struct {
	workload load.Workload
	config   *config
	tool     program.Tool
	room     *program.Room       // of files; nil without them
	server   *server             // of a database; nil without one
	series   database.Series     // of a load on that server
	said     *program.Transcript // commands and what they printed
	used     bool
}

var (
	_ load.Describer = (*instance)(nil)
	_ load.Timed     = (*instance)(nil)
	_ load.Teller    = (*instance)(nil)
)

// prepare finds the program and the files.
func (in *instance) prepare(ctx context.Context) error {
	tools, err := program.Find(ctx, needs())
	if err != nil {
		return err
	}
	in.tool = tools[Name]
	switch {
	case in.config.database != nil:
		return in.prepareDatabase(ctx)
	case in.config.test.name == "fileio":
		return in.prepareFiles()
	}
	return nil
}

// Engine describes the program of this VM; see load.Describer.
func (in *instance) Engine() interval.Engine {
	e := in.config.engine()
	e.Version = in.tool.Version
	if in.server != nil {
		in.server.Describe(&e)
	}
	e.Backends = append(e.Backends, in.room.Storage()...)
	return e
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Outputs has the command and what it printed; see load.Teller.
func (in *instance) Outputs() []load.Output {
	if in.server != nil {
		return in.server.Outputs("sysbench.txt")
	}
	return []load.Output{{Name: "sysbench.txt", Text: in.said.String()}}
}

// Close stops a server, and lets other loads use the data.
func (in *instance) Close() error {
	in.used = true
	if in.series != nil {
		in.series.Close()
	}
	err := in.room.Close()
	if in.server != nil {
		err = errors.Join(err, in.server.Close())
	}
	in.series, in.room = nil, nil
	return err
}

// Run runs the load or the prefill; see load.Instance.
func (in *instance) Run(ctx context.Context, sink load.Sink) error {
	if in.used {
		return fmt.Errorf("run workload %q: it ran before or is closed", in.workload.Name)
	}
	defer func() { _ = in.Close() }()
	axis := program.NewAxis(in.workload.ZeroUnixNanos)
	axis.WaitUntil(ctx, in.workload.StartNanos)
	out := &program.Recorder{Workload: in.workload, Sink: sink, Rated: in.config.rate() > 0, Clients: in.config.threads}
	r := &record{out: out, config: in.config}
	if d := in.config.database; d != nil && !d.endpoint {
		r.server = interval.UnknownGauges(len(d.kind.gauges))
	}
	var err error
	if ctx.Err() == nil {
		if in.workload.Prefill {
			r.begin(axis.Now())
			err = in.fill(ctx, axis, out)
		} else {
			err = in.drive(ctx, axis, r)
		}
	}
	r.begin(axis.Now()) // of a load that did not start
	if out.Gauges == nil {
		out.Gauges = interval.UnknownGauges(len(in.config.engine().Gauges))
	}
	out.Finish(max(axis.Now(), r.to))
	return program.Outcome(ctx, in.workload.Name, err)
}

// complete adds what all commands of the instance have: the program, its folder, and nothing of this process's environment.
func (in *instance) complete(c program.Command) program.Command {
	c.Path = in.tool.Path
	if in.server != nil {
		return in.server.Complete(c)
	}
	c.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	if in.room != nil {
		c.Dir = in.folder()
	}
	return c
}

// fill makes the data of a load in place of former data, and reports that time passes.
func (in *instance) fill(ctx context.Context, axis program.Axis, out *program.Recorder) error {
	fill := in.fillFiles
	switch {
	case in.server != nil:
		fill = in.fillDatabase
	case in.room == nil:
		return nil
	}
	return out.Beside(axis, func() error { return fill(ctx) })
}

// command is one of sysbench for this load or prefill.
func (in *instance) command(verb string) program.Command {
	var more []string
	if in.server != nil {
		more = in.server.reach
	}
	return in.complete(in.config.command(verb, &in.workload, more...))
}

// keep runs a command and keeps what it prints.
func (in *instance) keep(ctx context.Context, command program.Command) error {
	fmt.Fprintf(in.said, "$ %s\n", command)
	text, err := command.Run(ctx)
	fmt.Fprint(in.said, text)
	if err != nil {
		err = fmt.Errorf("%w%s", err, fatal(text))
	}
	return err
}

// line is one line of sysbench's output and when it came.
type line struct {
	text string
	at   time.Time
}

// listen passes on lines until the end of the output. The error it then sends is nil if all was read.
func listen(read *os.File, lines chan<- line, over chan<- error) {
	defer close(lines)
	defer func() { _ = read.Close() }()
	reader := textio.NewLineReader(read, lineBytesMax)
	for {
		text, err := reader.Next()
		if err != nil {
			_, rest := io.Copy(io.Discard, reader.Rest()) // so that sysbench never waits for a reader
			over <- rest
			return
		}
		lines <- line{string(text), time.Now()}
	}
}

// drive runs sysbench and follows its output.
func (in *instance) drive(ctx context.Context, axis program.Axis, r *record) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	program.Widen(write)
	last := program.NewTail(in.workload.Devices)
	command := in.command("run")
	command.Stdout, command.Stderr = write, last
	fmt.Fprintf(in.said, "$ %s\n", command)
	p, err := command.Start()
	_ = write.Close()
	if err != nil {
		_ = read.Close()
		return fmt.Errorf("start sysbench: %w", err)
	}
	if in.series != nil {
		if values := in.series.Begin(); values != nil {
			r.server = values
		}
	}
	p.Bound(read)
	lines, over := make(chan line), make(chan error, 1)
	go listen(read, lines, over)
	rest := in.follow(ctx, axis, p, r, lines)
	failed := p.Wait()
	if err := <-over; failed == nil && err != nil {
		failed = program.ErrHeld
	}
	return in.conclude(ctx, r, rest, ended{at: axis.Now(), failed: failed, said: last})
}

// follow takes reports until sysbench has closed its output, and returns what came beside them. A load that is to end early gets an
// alarm, by which sysbench prints its totals.
func (in *instance) follow(ctx context.Context, axis program.Axis, p *program.Process, r *record, lines <-chan line) string {
	stop := &program.Stopper{Process: p, Signal: syscall.SIGALRM, Grace: stopGrace}
	defer stop.End()
	var rest strings.Builder
	cancelled := ctx.Done()
	var lost <-chan struct{}
	if in.server != nil {
		lost = in.server.Ended()
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if in.series == nil {
				continue
			}
			if values, fresh := in.series.Look(tickEvery); fresh {
				r.server = values
			}
		case l, open := <-lines:
			if !open {
				return rest.String()
			}
			at := axis.Of(l.at)
			report, is := in.config.parseReport(l.text)
			if strings.HasPrefix(l.text, "Threads started!") {
				r.begin(at)
			}
			switch {
			case is && r.begun:
				r.report(report, at)
				r.out.Effort(p.UsedCPU(), interval.Effort{}, at)
			case rest.Len() < summaryMax:
				rest.WriteString(l.text + "\n")
			}
			fmt.Fprintln(in.said, l.text)
		case <-lost:
			lost = nil
			p.Kill() // sysbench would try to connect to MariaDB again forever
		case <-cancelled:
			cancelled = nil
			if !r.begun {
				p.Kill() // an alarm would be taken for one of its own start
				break
			}
			stop.Begin()
		}
	}
}

// ended is how sysbench ended.
type ended struct {
	at     int64
	failed error
	said   *program.Tail
}

// conclude takes the summary. sysbench reports errors on either output, and exits with 2 when an alarm ended it.
func (in *instance) conclude(ctx context.Context, r *record, text string, e ended) error {
	err := in.judge(ctx, r, text, e)
	if in.server != nil && err != nil && ctx.Err() == nil {
		return in.server.Explain(err)
	}
	return err
}

func (in *instance) judge(ctx context.Context, r *record, text string, e ended) error {
	if !r.begun {
		return fmt.Errorf("sysbench did not start its threads: %w%s", orEnded(e.failed), fatal(text)+e.said.Quoted())
	}
	s, err := parseSummary(text)
	if err != nil {
		r.rest()
		if e.failed != nil {
			return fmt.Errorf("sysbench: %w%s", e.failed, fatal(text)+e.said.Quoted())
		}
		return err
	}
	if err := r.end(&s, e.at); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case s.latencies == nil && s.unfinished > 0:
		return fmt.Errorf("sysbench did not end %s after its time: %d operations were unfinished", overdue, s.unfinished)
	case e.failed != nil:
		return fmt.Errorf("sysbench: %w%s", e.failed, fatal(text)+e.said.Quoted())
	}
	return nil
}

var errEnded = errors.New("it ended without an error")

func orEnded(err error) error {
	if err == nil {
		return errEnded
	}
	return err
}

// fatalLines bounds how many lines of errors are quoted.
const fatalLines = 4

// fatal quotes what sysbench reports as errors on its standard output.
func fatal(text string) string {
	var found []string
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, "FATAL: ") && len(found) < fatalLines {
			found = append(found, strings.TrimSpace(strings.TrimPrefix(l, "FATAL: ")))
		}
	}
	if len(found) == 0 {
		return ""
	}
	return ": " + strings.Join(found, "; ")
}
