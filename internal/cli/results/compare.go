package results

import (
	"io"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/report/document"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braggdev/bragg/internal/cli/runref"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/report"
)

// Comparing are the settings of a comparison.
type Comparing struct {
	Base, New  []string // words for the runs of two sets; both empty for single runs
	FailOn     []string // conditions of a gate
	JUnit      string   // file for the outcome of the gate
	Out, Form  string   // file, or "" for standard output; name of the format
	align      string
	runs       string
	pseudonyms bool
}

// NewCompare returns the command compare.
func NewCompare(p *console.Process) *cobra.Command {
	var o Comparing
	form := formChoice{names: []string{"terminal", "html", console.FormJSON}}
	cmd := &cobra.Command{
		Use:   "compare RUN RUN... | --base RUN,RUN,... --new RUN,RUN,...",
		Short: "Compare runs, or two sets of repeated runs",
		Long: "Compare draws the results of several runs on one time axis, shows the same windows side by side, and lists the\n" +
			"factors that differ. The first run is the baseline. A rehearsal cannot be compared with a full run.\n\n" +
			"Single runs cannot distinguish change from chance. With --base and --new, compare takes two sets of repeated runs and says\n" +
			"of each number whether it is different: its ratio with a 95 % interval, how much it varies from run to run, and the smallest\n" +
			"difference that these runs would have shown. Three runs on each side are a start, five are good; bragg run --repeat makes\n" +
			"them. A label in a set names all runs that have it, and --base pinned the baseline of the scenario (bragg baseline).\n\n" +
			"--fail-on makes the comparison a gate: exit code 1 if a change is certainly beyond the limit, 3 if the runs do not decide\n" +
			"it, 0 if it is certainly within. Numbers are iops, bandwidth, completion, and mean, median, p95, p99, p99.9 of latency;\n" +
			"of \"RESULT\" and in \"WINDOW\" narrow them down. Costs of events (dip, stall, first_io, recovery, recovery_10, lost_operations,\n" +
			"failed_operations, p99_during) have limits in their unit; of \"EVENT\" and in \"WORKLOAD\" narrow them down.\n\n" + runref.Help,
		Example: "  bragg compare before after\n" +
			"  bragg compare monday tuesday --align nodes.PowerOff --out compare.html\n" +
			"  bragg compare --base old1,old2,old3 --new new1,new2,new3\n" +
			"  bragg compare --base old1,old2,old3 --new new1,new2,new3 --fail-on 'p99 > 10%' --fail-on 'iops < -5%' --junit gate.xml\n" +
			"  bragg compare --base old1,old2,old3 --new new1,new2,new3 --fail-on 'recovery of \"nodes.PowerOff\" > 10 s'",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := o.arguments(cmd, args); err != nil {
				return err
			}
			if o.Form, err = form.choose(o.Out); err != nil {
				return err
			}
			return o.Run(p, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.align, "align", "", "`EVENT` at time zero: a step or an annotation (default: start of the run phase)")
	flags.StringSliceVar(&o.Base, "base", nil, "set A: `RUN,RUN,...`, repetitions of one thing")
	flags.StringSliceVar(&o.New, "new", nil, "set B: `RUN,RUN,...`, repetitions of the other")
	o.GateFlags(flags)
	form.flags(flags, "of the comparison: terminal, html or json (default by the extension of --out, else terminal)")
	flags.StringVar(&o.Out, "out", "", "output `FILE`; - is standard output")
	flags.BoolVar(&o.pseudonyms, "redact", false, "replace names and addresses of targets and machines with pseudonyms")
	p.RunsFlag(flags, &o.runs)
	cmd.ValidArgsFunction = runref.Complete(p, &o.runs)
	return cmd
}

// GateFlags adds the flags of a gate.
func (o *Comparing) GateFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.FailOn, "fail-on", nil, "fail on `CONDITION`, a change from A to B: 'p99 > 10%' (repeatable)")
	flags.StringVar(&o.JUnit, "junit", "", "write the outcome of --fail-on as JUnit XML to `FILE`")
}

// arguments accepts two or more runs, or two sets.
func (o *Comparing) arguments(cmd *cobra.Command, args []string) error {
	switch {
	case o.JUnit != "" && len(o.FailOn) == 0:
		return console.BadFlag("--junit has no meaning without --fail-on", "for example --fail-on 'p99 > 10%'")
	case len(o.Base)+len(o.New) == 0:
		if len(o.FailOn) > 0 && len(args) > 2 {
			return console.BadFlag("--fail-on compares two sets of runs", "name them with --base and --new")
		}
		return console.Between(2, -1)(cmd, args)
	case len(args) > 0:
		return console.BadFlag("--base and --new name all runs", "name runs either as arguments or as sets")
	case len(o.Base) == 0 || len(o.New) == 0:
		return console.BadFlag("--base and --new need each other", "for example --base old1,old2,old3 --new new1,new2,new3")
	}
	return nil
}

// conditions reads those of the gate.
func (o *Comparing) conditions() ([]compare.Condition, error) {
	var list []compare.Condition
	for _, text := range o.FailOn {
		condition, err := compare.ParseCondition(text)
		if err != nil {
			return nil, err
		}
		list = append(list, condition)
	}
	return list, nil
}

// Check returns the error of a faulty condition, before anything is run for it.
func (o *Comparing) Check() error {
	_, err := o.conditions()
	return err
}

// Run compares sets, or single runs if there are none, writes the comparison, and returns the outcome of the gate as an exit code.
func (o *Comparing) Run(p *console.Process, args []string) error {
	c, err := o.compare(p, args)
	if err != nil {
		return err
	}
	write := comparisonForm(p, c, o.Form, o.Out)
	if o.Out == "" || o.Out == "-" {
		err = write(p.Stdout)
	} else {
		err = saveFile(p.Path(o.Out), write)
	}
	if err != nil {
		return err
	}
	return o.outcome(p, c)
}

func (o *Comparing) compare(p *console.Process, args []string) (*compare.Comparison, error) {
	conditions, err := o.conditions()
	if err != nil {
		return nil, err
	}
	base, others := o.Base, o.New
	if len(conditions) > 0 && len(base) == 0 {
		base, others, args = args[:1], args[1:], nil
	}
	runs := p.RunsDirectory(o.runs)
	base, err = pinnedRuns(runs, base, func() (string, error) {
		all, err := readRuns(p, runs, runref.Repetitions(p, runs, others)[:1])
		if err != nil {
			return "", err
		}
		return all[0].Manifest.Scenario.Name, nil
	})
	if err != nil {
		return nil, err
	}
	base, others = runref.Repetitions(p, runs, base), runref.Repetitions(p, runs, others)
	all, err := readRuns(p, runs, slices.Concat(args, base, others))
	if err != nil {
		return nil, err
	}
	if o.pseudonyms {
		if err := runref.Redact(all...); err != nil {
			return nil, err
		}
	}
	options := compare.Options{AlignAt: o.align}
	if len(base) == 0 {
		return compare.Runs(all, options)
	}
	c, err := compare.OfSets(all[:len(base)], all[len(base):], options)
	if err == nil && len(conditions) > 0 {
		c.Judge(conditions)
	}
	return c, err
}

// outcome writes the test cases of the gate and returns its exit code.
func (o *Comparing) outcome(p *console.Process, c *compare.Comparison) error {
	if o.JUnit != "" {
		if err := saveFile(p.Path(o.JUnit), func(w io.Writer) error { return report.GateJUnit(w, c, time.Now()) }); err != nil {
			return err
		}
	}
	if c.Gate == nil {
		return nil
	}
	return console.ExitWith(map[compare.Outcome]int{compare.Passed: diag.ExitPass, compare.Failed: diag.ExitFailed,
		compare.Undecided: diag.ExitUndecided}[c.Gate.Outcome])
}

// readRuns reads the bundles that words name.
func readRuns(p *console.Process, runs string, words []string) ([]*document.Run, error) {
	var all []*document.Run
	for _, word := range words {
		b, live, err := runref.OpenLive(p, runs, word)
		if err != nil {
			return nil, err
		}
		run, err := runref.Read(b, live, word)
		if closeErr := b.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return nil, err
		}
		all = append(all, run)
	}
	return all, nil
}

// comparisonForm returns the function that writes a comparison in the named format.
func comparisonForm(p *console.Process, c *compare.Comparison, name, out string) func(io.Writer) error {
	switch name {
	case "html":
		return func(w io.Writer) error { return report.ComparisonHTML(w, c) }
	case console.FormJSON:
		return c.JSON
	}
	return func(w io.Writer) error { return report.ComparisonTerminal(w, c, p.Width(), p.Color() && out == "") }
}
