package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/live"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/cli/results"
	"github.com/braggdev/bragg/internal/cli/runref"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

func newRun(p *console.Process) *cobra.Command {
	var o order
	var q queue
	var k kneeFlags
	var s series
	cmd := &cobra.Command{
		Use:   "run SCENARIO...",
		Short: "Run scenarios and report the results",
		Long: "Run executes scenarios and writes a bundle and a report of each to the runs folder. Several scenarios run in\n" +
			"sequence, also after a failure. --repeat runs one several times, with --against or --against-set in turns with a variant\n" +
			"(A B B A), and compares both sets (see bragg compare); their runs have the labels LABEL/A and LABEL/B.\n" +
			"--find-knee repeats one at other rates and finds the highest that meets a threshold (docs/guides/scaling.md).\n" +
			"Ctrl-C stops the run, cleans up and writes the report, as do SIGTERM and a terminal that closes; start long runs\n" +
			"with nohup, or in tmux. After 3 s or more, a second Ctrl-C skips the cleanup (see bragg clean), a third exits.\n" +
			"No other signal skips it.\n\n" +
			"Exit codes: 0 all thresholds met, 1 a threshold missed, 3 undecided, 65 errors in a file, 69 target unavailable or\n" +
			"too small, 75 target in use, 77 a step refused for safety, 130 interrupted.\n\n" + scenarioHelp,
		Example: "  bragg run four_corners --rehearse 60s\n" +
			"  bragg run oltp vdi --label nightly --junit results.xml\n" +
			"  bragg run ./my_scenario --set vms_per_node=4 --engine fio\n" +
			"  bragg run node_failure --target cluster.yml --max-full 80\n" +
			"  bragg run oltp --rehearse 30s --find-knee 'p99 < 1ms'\n" +
			"  bragg run oltp --repeat 5 --target old.yml --against new.yml --label upgrade\n" +
			"  bragg run oltp --repeat 5 --against-set intensity=large --fail-on 'p99 > 10%'",
		Args: console.Between(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case k.threshold != "" && s.on(cmd.Flags()):
				return console.BadFlag("--find-knee cannot be combined with a comparison of repeated runs", "the search repeats runs by itself")
			case k.threshold != "":
				return findKnee(cmd.Context(), p, &o, q.of(args), k)
			case s.on(cmd.Flags()):
				return runSeries(cmd.Context(), p, &o, &s, q.of(args))
			}
			return runAll(cmd.Context(), p, &o, q.of(args))
		},
		ValidArgsFunction: completeScenarios,
	}
	o.flags(p, cmd)
	o.remoteFlags(cmd.Flags())
	s.flags(cmd.Flags())
	cmd.Flags().StringVar(&q.label, "label", "", "`NAME` of the run for report, compare and query")
	cmd.Flags().BoolVar(&q.json, "json", false, "print the outcomes as JSON instead of the live view and numbers")
	k.flags(cmd.Flags())
	cmd.Flags().StringVar(&q.junit, "junit", "", "also write JUnit test cases to `FILE`, one suite per scenario")
	return cmd
}

// queue is the list of scenarios of run and demo.
type queue struct {
	words []string
	label string
	json  bool
	junit string // file for test cases; "": none
	// brief prints the outcome of a run instead of the table of all results; next follows at the end, if there is a run. Both may be
	// empty.
	brief func(w io.Writer, run *document.Run) error
	next  string
	// shows: a completed run is a success of the command, whether or not it meets its thresholds on this machine.
	shows bool
}

func (q queue) of(words []string) queue {
	q.words = words
	return q
}

// ranRun is the outcome of one scenario of a queue.
type ranRun struct {
	Scenario string `json:"scenario"`
	session.Outcome
	Error string `json:"error,omitempty"`
}

func runAll(ctx context.Context, p *console.Process, o *order, q queue) error {
	if err := checkLabel(q.label); err != nil {
		return err
	}
	stop, end := watchStops(ctx, p)
	defer end()
	outcomes := []ranRun{}
	for i, word := range q.words {
		if stop.Stopped() {
			noteRun(p, q, "not run: interrupted: "+strings.Join(q.words[i:], ", "))
			break
		}
		if len(q.words) > 1 {
			noteRun(p, q, fmt.Sprintf("── %d of %d: %s", i+1, len(q.words), word))
		}
		outcomes = append(outcomes, runOne(ctx, o, word, q, stop))
	}
	if q.junit != "" {
		if err := results.SaveJUnit(p, q.junit, readRan(q.words, outcomes)); err != nil {
			return err
		}
	}
	if q.json {
		if err := p.PrintJSON(outcomes); err != nil {
			return err
		}
	} else if len(q.words) > 1 {
		if err := printOutcomes(p, outcomes); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(outcomes, func(r ranRun) bool { return r.Dir != "" }) { // otherwise no run exists to report or to repeat
		fmt.Fprint(p.Stdout, q.next)
	}
	if q.shows && len(outcomes) == len(q.words) && !slices.ContainsFunc(outcomes, func(r ranRun) bool { return !shown(&r) }) {
		return nil
	}
	return console.ExitWith(worst(outcomes))
}

// noteRun prints a line about the queue, unless the output is JSON.
func noteRun(p *console.Process, q queue, text string) {
	if !q.json {
		fmt.Fprintln(p.Stdout, textio.Lines(text))
	}
}

// labelBytesMax keeps labels readable in tables.
const labelBytesMax = 80

func checkLabel(label string) error {
	if len(label) > labelBytesMax || textio.Lines(label) != label || label == "last" || strings.ContainsAny(label, "\n\t") || runref.IsPath(label) {
		return console.BadFlag("--label "+strconv.Quote(label)+" cannot name a run",
			"a label has at most 80 bytes and no line feed, is not \"last\" and does not start like a path (/, ./, ../)")
	}
	return nil
}

// shown reports whether a run completed its scenario and cleaned up.
func shown(ran *ranRun) bool {
	return ran.Error == "" && ran.Ended == result.EndedCompleted && len(ran.Problems) == 0 && len(ran.Left) == 0
}

// worst is the exit code of a queue: a missed threshold outweighs an undecided run.
func worst(outcomes []ranRun) int {
	code := diag.ExitPass
	for _, o := range outcomes {
		if o.Exit == diag.ExitInterrupted || o.Exit == diag.ExitFailed && code != diag.ExitInterrupted {
			code = o.Exit
		}
		if code == diag.ExitPass {
			code = o.Exit
		}
	}
	return code
}

// runOne runs one scenario and reports it. It prints all errors, so that the queue continues.
func runOne(ctx context.Context, o *order, word string, q queue, stop *stopper) ranRun {
	p, ran := stop.process, ranRun{Scenario: word}
	stop.follow("", func(text string) { fmt.Fprintln(p.Stderr, text) })
	outcome, err := carryOut(ctx, o, word, q, stop)
	if errors.Is(err, context.Canceled) && stop.Stopped() {
		err = &diag.Error{Code: "stopped", Message: "interrupted before any change", Exit: diag.ExitInterrupted}
	}
	ran.Outcome = outcome
	if err != nil {
		ran.Exit, ran.Error = p.PrintError(err), err.Error()
	}
	return ran
}

func carryOut(ctx context.Context, o *order, word string, q queue, stop *stopper) (session.Outcome, error) {
	var none session.Outcome
	p := stop.process
	made, err := o.make(p, word, q.label)
	if err != nil {
		return none, err
	}
	prepared, err := session.Prepare(stop.Begun, made)
	if err != nil {
		return none, errors.Join(err, leftOff(p, made.Runs, err))
	}
	defer prepared.Close()
	warn(p, prepared)
	runref.WarnOfWriters(p, made.Runs)
	view := newView(p, q, stop)
	outcome, err := prepared.Run(context.WithoutCancel(ctx), session.RunOptions{Watcher: view, Stops: stop.levels})
	view.close()
	if err != nil {
		return outcome, err
	}
	return outcome, reportRun(p, outcome, q)
}

// leftOff is a second error beside one of a target that does not answer: an earlier run may have left its hosts without power.
func leftOff(p *console.Process, runs string, err error) error {
	left, _ := session.Unfinished(runs) // the first error says more than one of the journals
	if diag.ExitCode(err) != diag.ExitUnavailable || len(left) == 0 {
		return nil
	}
	return &diag.Error{
		Code: "not-cleaned", Message: "run " + left[len(left)-1] + " was not cleaned up, and may have left nodes without power", Exit: diag.ExitUnavailable,
		Hint: "clean up first: " + runref.CommandIn(p, runs, "clean"),
	}
}

// warn prints the warnings of the scenario and the plan.
func warn(p *console.Process, prepared *session.Prepared) {
	if len(prepared.Plan.Warnings) > 0 {
		console.PrintDiagnostics(p.Stderr, prepared.Plan.Warnings)
	}
}

// reportRun writes the report into the run's folder and prints the numbers.
func reportRun(p *console.Process, outcome session.Outcome, q queue) error {
	b, err := runref.OpenBundle(outcome.Dir)
	if err != nil {
		return err
	}
	defer b.Close()
	read, err := document.Read(b)
	if err != nil {
		return err
	}
	if err := results.WriteHTML(b, "report.html", read); err != nil {
		return err
	}
	if q.json {
		return nil
	}
	brief := func(w io.Writer, run *document.Run) error { return report.Brief(w, run, p.Width(), p.Color()) }
	if q.brief != nil {
		brief = q.brief
	}
	// Without a reader (bragg run oltp | head) the run counts all the same: its report is written, and its exit code is its own.
	if err := brief(p.Stdout, read); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	fmt.Fprintf(p.Stdout, "\nreport: %s\n  full report in the terminal: %s\n", textio.Lines(filepath.Join(outcome.Dir, "report.html")), textio.Lines(textio.Shell("bragg", "report", outcome.Dir)))
	for _, problem := range outcome.Problems {
		fmt.Fprintf(p.Stderr, "bragg: %s\n", textio.Lines(problem))
	}
	if len(outcome.Left) > 0 {
		fmt.Fprintf(p.Stderr, "bragg: cleanup incomplete: %s\n  %s\n", textio.Lines(strings.Join(outcome.Left, "; ")), textio.Lines(runref.CleanCommand(p, outcome.Dir)))
	}
	return nil
}

// readRan reads the sealed runs of a queue. Scenarios that an interrupt skipped are included.
func readRan(words []string, outcomes []ranRun) []report.Ran {
	var all []report.Ran
	for _, o := range outcomes {
		ran := report.Ran{NotRun: report.NotRun{Scenario: o.Scenario, At: time.Now(), Error: o.Error}}
		if o.Dir != "" {
			var err error
			if ran.Run, err = readDir(o.Dir); err != nil && ran.Error == "" {
				ran.Error = err.Error()
			}
		}
		all = append(all, ran)
	}
	for _, word := range words[len(outcomes):] {
		all = append(all, report.Ran{NotRun: report.NotRun{Scenario: word, At: time.Now(), Error: "not run: interrupted"}})
	}
	return all
}

func readDir(dir string) (*document.Run, error) {
	b, err := runref.OpenBundle(dir)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return document.Read(b)
}

func printOutcomes(p *console.Process, outcomes []ranRun) error {
	fmt.Fprintln(p.Stdout)
	t := console.Table{Head: []string{"SCENARIO", "RUN", "VERDICT", "REASON"}}
	for _, o := range outcomes {
		verdict, reason := result.Headline(o.Verdict, o.Validity), o.Reason
		if o.Validity == result.Invalid || o.Verdict == result.Pass && o.Validity == result.Qualified {
			reason = o.ValidityReason
		}
		if o.Error != "" {
			verdict, reason = "not run", firstLine(o.Error)
		}
		t.Add(o.Scenario, o.Run, verdict, reason)
	}
	return t.Print(p.Stdout)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// view shows the progress of a run.
type view struct {
	process *console.Process
	stop    *stopper
	live    *live.View // nil for JSON output
}

func newView(p *console.Process, q queue, stop *stopper) *view {
	v := &view{process: p, stop: stop}
	if !q.json {
		v.live = live.New(live.Options{Out: p.Stdout, Terminal: p.Live(), Color: p.Color(), Size: p.LiveSize()})
	}
	return v
}

// Begin prints what the run is about to do. With Event and Interval, it implements session.Watcher.
func (v *view) Begin(p *plan.Plan, dir string) {
	if v.live == nil {
		v.stop.follow(dir, func(text string) { fmt.Fprintln(v.process.Stderr, text) })
		return
	}
	v.stop.follow(dir, v.live.Print)
	v.live.Print(briefing(p, dir))
	v.live.Plan(p)
}

func (v *view) Event(e interval.Event) {
	if v.live != nil {
		v.live.Event(e)
	}
}

func (v *view) Interval(iv interval.Interval) {
	if v.live != nil {
		v.live.Interval(iv)
	}
}

func (v *view) close() {
	if v.live != nil {
		v.live.Close()
	}
}

// briefing describes in a few lines what a run is about to do.
func briefing(p *plan.Plan, dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s: %s on %s\n", filepath.Base(dir), p.Scenario.DisplayName, p.Target.Name)
	if r := p.Rehearsal; r != nil {
		fmt.Fprintf(&b, "  %s\n", plan.RehearsalLine(r))
	}
	f := p.Footprint
	fmt.Fprintf(&b, "  %s, %s on disk\n  written: %s\n", textio.Plural(f.VMs, "VM"), unit.FormatBytes(f.Bytes()), f.Written())
	about := "about "
	if p.Estimate.Rough {
		about = "roughly "
	}
	fmt.Fprintf(&b, "  %s%s, until %s\n", about, unit.FormatDuration(p.Estimate.Total),
		time.Now().Add(p.Estimate.Total).Format("15:04:05"))
	return b.String()
}
