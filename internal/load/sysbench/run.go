package sysbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
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
	stopGrace    = 10 * time.Second // for sysbench's totals, between the alarm and SIGKILL
	summaryMax   = 1 << 20
	lineBytesMax = 64 << 10
	tickEvery    = time.Second
)

// instance is one prepared load or prefill.
type instance struct {
	workload load.Workload
	config   *config
	tool     program.Tool
	room     *program.Room       // of files; nil without them
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
	if in.config.test.name != "fileio" {
		return nil
	}
	f := &in.config.files
	if in.room, err = program.OpenRoom(&in.workload, program.RoomName{Name: Name}, f.disk); err != nil || in.workload.Prefill {
		return err
	}
	for i := range f.count {
		info, err := os.Stat(in.file(i))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() != f.bytes/int64(f.count) {
			return &diag.Error{Code: "no-files", Exit: diag.ExitData,
				Message: fmt.Sprintf("disk %s does not have the %d files of %d bytes of this load", f.disk, f.count, f.bytes/int64(f.count)),
				Hint:    "add workload.PrefillRun for this workload, or for one with the same disk, data and files, before the load"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// folder is where the files are.
func (in *instance) folder() string { return in.room.Path(program.DiskFolder(in.config.files.disk)) }

// file is one of them, by sysbench's names.
func (in *instance) file(i int) string {
	return filepath.Join(in.folder(), fmt.Sprintf("test_file.%d", i))
}

// Engine describes the program of this VM; see load.Describer.
func (in *instance) Engine() interval.Engine {
	e := in.config.engine()
	e.Version = in.tool.Version
	return e
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Outputs has the command and what it printed; see load.Teller.
func (in *instance) Outputs() []load.Output {
	return []load.Output{{Name: "sysbench.txt", Text: in.said.String()}}
}

// Close lets other loads use the files.
func (in *instance) Close() error {
	in.used = true
	err := in.room.Close()
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
	if in.workload.StartNanos > 0 {
		_ = wait.For(ctx, time.Duration(in.workload.StartNanos-axis.Now()))
	}
	out := &program.Recorder{Workload: in.workload, Sink: sink, Clients: in.config.threads}
	r := &record{out: out, config: in.config}
	var err error
	if ctx.Err() == nil {
		if in.workload.Prefill {
			r.begin(axis.Now())
			err = in.fill(ctx)
		} else {
			err = in.drive(ctx, axis, r)
		}
	}
	r.begin(axis.Now()) // of a load that did not start
	if out.Gauges == nil {
		for range in.config.engine().Gauges {
			out.Gauges = append(out.Gauges, math.NaN())
		}
	}
	out.Finish(max(axis.Now(), r.to))
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("run workload %q: %w", in.workload.Name, err)
	}
	return nil
}

// complete adds what all commands of the instance have: the program, its folder, and nothing of this process's environment.
func (in *instance) complete(c program.Command) program.Command {
	c.Path, c.Env = in.tool.Path, []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	if in.room != nil {
		c.Dir = in.folder()
	}
	return c
}

// fill makes the files in place of former ones.
func (in *instance) fill(ctx context.Context) error {
	if in.room == nil {
		return nil
	}
	if err := in.room.Clear(program.DiskFolder(in.config.files.disk)); err != nil {
		return err
	}
	command := in.complete(in.config.command("prepare", 0, 0))
	fmt.Fprintf(in.said, "$ %s\n", command)
	text, err := command.Run(ctx)
	fmt.Fprint(in.said, text)
	return err
}

// line is one line of sysbench's output and when it came.
type line struct {
	text string
	at   time.Time
}

// listen passes on lines until the end of the output.
func listen(read *os.File, lines chan<- line) {
	defer close(lines)
	defer func() { _ = read.Close() }()
	reader := textio.NewLineReader(read, lineBytesMax)
	for {
		text, err := reader.Next()
		if err != nil {
			_, _ = io.Copy(io.Discard, reader.Rest()) // so that sysbench never waits for a reader
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
	command := in.complete(in.config.command("run", in.workload.Runtime, in.workload.Seed))
	command.Stdout, command.Stderr = write, last
	fmt.Fprintf(in.said, "$ %s\n", command)
	p, err := command.Start()
	_ = write.Close()
	if err != nil {
		_ = read.Close()
		return fmt.Errorf("start sysbench: %w", err)
	}
	lines := make(chan line)
	go listen(read, lines)
	rest := in.follow(ctx, axis, p, r, lines)
	failed := p.Wait()
	return in.conclude(ctx, r, rest, ended{at: axis.Now(), failed: failed, said: last})
}

// follow takes reports until sysbench has closed its output, and returns what came beside them. A load that is to end early gets an
// alarm, by which sysbench prints its totals.
func (in *instance) follow(ctx context.Context, axis program.Axis, p *program.Process, r *record, lines <-chan line) string {
	stop := &program.Stopper{Process: p, Signal: syscall.SIGALRM, Grace: stopGrace}
	defer stop.End()
	var rest strings.Builder
	cancelled := ctx.Done()
	for {
		select {
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
	case s.latencies == nil:
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
