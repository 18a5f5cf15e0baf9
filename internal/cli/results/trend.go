package results

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/baseline"
	"github.com/braggdev/bragg/internal/cli/runref"
	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// Bounds of the runs of a trend.
const (
	trendRunsDefault = 100
	trendRunsMax     = 1000
)

// trend are the settings of the command.
type trend struct {
	runs, number string
	html         string // file
	last         int
	asJSON       bool
	baseline     []string
	gate         Comparing
}

// NewTrend returns the command trend.
func NewTrend(p *console.Process) *cobra.Command {
	var t trend
	cmd := &cobra.Command{
		Use:   "trend SCENARIO",
		Short: "Show one number of all runs of a scenario over time",
		Long: "Trend draws one number of all comparable runs of a scenario, with the band in which the next run is expected, and marks\n" +
			"the first run of each change of level. Comparable are completed runs with the text and variables of the newest one. The level\n" +
			"of a pinned baseline (bragg baseline) is a line.\n\n" +
			"With --baseline and --fail-on, the runs since the last change are compared with the runs of the baseline, for example those that\n" +
			"are pinned: exit code 1 if a change is certainly beyond the limit, 3 if the runs do not decide it (see bragg compare).",
		Example: "  bragg trend oltp\n" +
			"  bragg trend oltp --number 'p99 of \"OLTP Latency\"' --last 30 --html trend.html\n" +
			"  bragg trend oltp --baseline release-1 --fail-on 'p99 > 10%'\n" +
			"  bragg trend oltp --baseline pinned --fail-on 'iops < -5%'",
		Args: console.Between(1, 1),
		RunE: func(_ *cobra.Command, args []string) error { return t.run(p, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&t.number, "number", "", "`NUMBER`: iops, bandwidth, completion, or a statistic of latency such as p99 (default: the first result)")
	flags.IntVar(&t.last, "last", trendRunsDefault, "maximum `NUMBER` of runs, the newest")
	flags.StringSliceVar(&t.baseline, "baseline", nil, "`RUN,RUN,...`, a label or pinned: the runs that --fail-on compares with")
	flags.StringVar(&t.html, "html", "", "also write the trend as a self-contained page to `FILE`")
	t.gate.GateFlags(flags)
	console.JSONFlag(flags, &t.asJSON)
	p.RunsFlag(flags, &t.runs)
	return cmd
}

func (t *trend) run(p *console.Process, name string) error {
	switch {
	case t.last < 1 || t.last > trendRunsMax:
		return console.BadFlag(fmt.Sprintf("--last %d is not a number from 1 to %d", t.last, trendRunsMax), "for example --last 30")
	case len(t.gate.FailOn) > 0 != (len(t.baseline) > 0):
		return console.BadFlag("--baseline and --fail-on need each other", "for example --baseline release-1 --fail-on 'p99 > 10%'")
	case t.gate.JUnit != "" && len(t.gate.FailOn) == 0:
		return console.BadFlag("--junit has no meaning without --fail-on", "for example --baseline release-1 --fail-on 'p99 > 10%'")
	}
	if err := t.gate.Check(); err != nil {
		return err
	}
	pins, err := baseline.Read(p.RunsDirectory(t.runs))
	if err != nil {
		return err
	}
	pin := pins.Baselines[name]
	dirs, err := t.find(p.RunsDirectory(t.runs), name, pin.Names())
	if err != nil {
		return err
	}
	all, err := readRuns(p, p.RunsDirectory(t.runs), dirs)
	if err != nil {
		return err
	}
	found, err := compare.OfHistory(all, t.number, pin.Names())
	if err != nil {
		return err
	}
	var c *compare.Comparison
	if len(t.baseline) > 0 {
		if c, err = t.judge(p, found, all, dirs); err != nil {
			return err
		}
		found.Gate = c.Gate
	}
	write := func(w io.Writer) error { return report.TrendTerminal(w, found, p.Width(), p.Color()) }
	if t.asJSON {
		write = found.JSON
	}
	if err := write(p.Stdout); err != nil {
		return err
	}
	if t.html != "" {
		if err := saveFile(p.Path(t.html), func(w io.Writer) error { return report.TrendHTML(w, found) }); err != nil {
			return err
		}
	}
	if c == nil {
		return nil
	}
	return t.gate.outcome(p, c)
}

// judge compares the runs since the last change with the baseline.
func (t *trend) judge(p *console.Process, found *compare.Trend, all []*document.Run, dirs []string) (*compare.Comparison, error) {
	runs := p.RunsDirectory(t.runs)
	base, err := pinnedRuns(runs, t.baseline, func() (string, error) { return found.Scenario, nil })
	if err != nil {
		return nil, err
	}
	base = runref.Repetitions(p, runs, base)
	for i, word := range base {
		dir, err := runref.Find(p, runs, word)
		if err != nil {
			return nil, err
		}
		base[i] = p.Path(dir)
	}
	t.gate.Base, t.gate.runs = base, t.runs
	last := found.Levels[len(found.Levels)-1]
	for _, point := range found.Points[last.From:] {
		at := slices.IndexFunc(all, func(run *document.Run) bool { return run.Manifest.Run == point.Run })
		if dir := p.Path(dirs[at]); !slices.Contains(base, dir) {
			t.gate.New = append(t.gate.New, dir)
		}
	}
	if len(t.gate.New) == 0 {
		return nil, &diag.Error{Code: "no-history", Exit: diag.ExitUndecided, Message: "all runs since the last change are of the baseline",
			Hint: "run the scenario again"}
	}
	return t.gate.compare(p, nil)
}

// find returns the folders of the newest sealed runs of a scenario and of the pinned ones, the oldest first.
func (t *trend) find(runs, name string, pinned []string) ([]string, error) {
	listed, err := result.List(runs)
	if err != nil {
		return nil, err
	}
	var dirs, names []string
	for _, l := range listed {
		if l.Seal == nil {
			continue
		}
		if l.Manifest.Scenario.Name == name && (len(dirs) < t.last || slices.Contains(pinned, filepath.Base(l.Dir))) {
			dirs = append(dirs, l.Dir)
		}
		if !slices.Contains(names, l.Manifest.Scenario.Name) {
			names = append(names, l.Manifest.Scenario.Name)
		}
	}
	if len(dirs) == 0 {
		hint := "bragg runs list shows all runs"
		if near := diag.Nearest(name, names); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, &diag.Error{Code: "no-history", Exit: diag.ExitUsage, Message: fmt.Sprintf("no run of scenario %q in %s", name, runs), Hint: hint}
	}
	slices.Reverse(dirs)
	return dirs, nil
}
