package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/knee"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/unit"
)

// kneeFlags are the flags of run that search for the highest rate.
type kneeFlags struct {
	threshold string
	runs      int
}

func (k *kneeFlags) flags(flags *pflag.FlagSet) {
	flags.StringVar(&k.threshold, "find-knee", "", "repeat the scenario at other rates to find the highest that meets `THRESHOLD`: 'p99 < 1ms'")
	flags.IntVar(&k.runs, "knee-runs", knee.RunsDefault, "maximum `NUMBER` of runs of --find-knee")
}

// check parses the threshold.
func (k *kneeFlags) check(q queue) (scenario.Threshold, error) {
	x, err := knee.ParseThreshold(k.threshold)
	switch {
	case err != nil:
		return x, console.BadFlag("--find-knee: "+err.Error(), "for example --find-knee 'p99 < 1ms'")
	case k.runs < 1 || k.runs > knee.RunsMax:
		return x, console.BadFlag(fmt.Sprintf("--knee-runs %d is not between 1 and %d", k.runs, knee.RunsMax), "")
	case len(q.words) != 1 || q.junit != "":
		return x, console.BadFlag("--find-knee takes one scenario and no --junit", "")
	}
	return x, nil
}

// findKnee runs a scenario at one rate after the other and prints the highest at which the threshold holds.
func findKnee(ctx context.Context, p *console.Process, o *order, q queue, k kneeFlags) error {
	x, err := k.check(q)
	if err == nil {
		err = checkLabel(q.label)
	}
	if err != nil {
		return err
	}
	stop, end := watchStops(ctx, p)
	defer end()
	if err := checkRates(o, q, stop); err != nil {
		return err
	}
	search := knee.New(k.runs)
	q.brief = func(io.Writer, *document.Run) error { return nil }
	for factor, more := search.Next(); more && !stop.Stopped(); factor, more = search.Next() {
		o.rateFactor = factor
		noteRun(p, q, fmt.Sprintf("── run %d, at most %d: %s times the scenario's rate", len(search.Answer().Runs)+1, k.runs, unit.ThreeDigits(factor)))
		outcome, err := carryOut(ctx, o, q.words[0], q, stop)
		if err != nil {
			return err
		}
		run, err := readDir(outcome.Dir)
		if err != nil {
			return err
		}
		if outcome.Ended != result.EndedCompleted {
			noteRun(p, q, "the search ends: "+outcome.Reason)
			break
		}
		seen := knee.Observe(&run.Summary, x, factor)
		seen.Run = outcome.Run
		search.Add(seen)
		noteRun(p, q, "\n"+kneeLine(x, seen))
	}
	return printKnee(p, q, x, search.Answer(), stop.Stopped())
}

// checkRates refuses a scenario whose loads have no rate to vary, before anything runs.
func checkRates(o *order, q queue, stop *stopper) error {
	made, err := o.make(stop.process, q.words[0], q.label)
	if err != nil {
		return err
	}
	prepared, err := session.Prepare(stop.Begun, made)
	if err != nil {
		return err
	}
	defer prepared.Close()
	if slices.ContainsFunc(prepared.Plan.Workloads, func(w plan.Workload) bool {
		return w.Load != nil && w.Load.Engine.Loop == interval.LoopOpen
	}) {
		return nil
	}
	return &diag.Error{
		Code: "no-rate", Message: "no load of the scenario is an open loop, so there is no rate to vary", Exit: diag.ExitData,
		Hint: "set a rate in the job file (rate_iops) and use the native engine; for closed loops see bragg analyze usl",
	}
}

// kneeLine is what one run found.
func kneeLine(x scenario.Threshold, o knee.Observation) string {
	verdict := "missed"
	if o.Met {
		verdict = "met"
	}
	text := fmt.Sprintf("%s: %s with %s %s at %s operations/s", o.Run, verdict, x.Statistic,
		strings.Repeat("≥ ", map[bool]int{true: 1}[o.AtLeast])+unit.FormatLatency(float64(o.Value)), unit.FormatCount(o.Rate))
	if o.Undecided != "" {
		text += " (undecided: " + o.Undecided + ")"
	}
	return text
}

// printKnee prints the answer, and chooses the exit code.
func printKnee(p *console.Process, q queue, x scenario.Threshold, a knee.Answer, stopped bool) error {
	sentence := a.Sentence(x.Text)
	if q.json {
		if err := p.PrintJSON(struct {
			Threshold string `json:"threshold"`
			Sentence  string `json:"sentence"`
			knee.Answer
		}{x.Text, sentence, a}); err != nil {
			return err
		}
	} else {
		t := console.Table{Head: []string{"RATE", "OF SCENARIO", strings.ToUpper(x.Statistic), "THRESHOLD", "RUN"}, Width: p.Columns()}
		slices.SortStableFunc(a.Runs, func(a, b knee.Observation) int {
			if a.Factor < b.Factor {
				return -1
			}
			return 1
		})
		for _, o := range a.Runs {
			verdict := map[bool]string{true: "met", false: "missed"}[o.Met]
			if o.Undecided != "" {
				verdict = "undecided: " + o.Undecided
			}
			t.Add(unit.FormatCount(o.Rate)+"/s", unit.ThreeDigits(o.Factor), unit.FormatLatency(float64(o.Value)), verdict, o.Run)
		}
		fmt.Fprintln(p.Stdout)
		if err := t.Print(p.Stdout); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(p.Stdout, "\n%s\n", console.Paragraphs(sentence, p.TextWidth())); err != nil {
			return err
		}
	}
	switch {
	case stopped:
		return console.ExitWith(diag.ExitInterrupted)
	case a.Kind == knee.Found:
		return nil
	case a.Kind == knee.NeverMet:
		return console.ExitWith(diag.ExitFailed)
	}
	return console.ExitWith(diag.ExitUndecided)
}
