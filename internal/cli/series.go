package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/braggdev/bragg/internal/cli/results"
	"github.com/braggdev/bragg/internal/cli/runref"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// series is the repetition of one scenario, alone or in turns with a variant of it: set A is as ordered, set B with another target
// or other variables.
type series struct {
	repeat     int
	against    string
	againstSet []string
	failOn     []string
}

// seriesRunsMax bounds the repetitions: more show no smaller difference than the drift of a machine in that time.
const seriesRunsMax = 50

func (s *series) flags(flags *pflag.FlagSet) {
	flags.IntVar(&s.repeat, "repeat", 0, "run the scenario `N` times, with --against each of both N times")
	flags.StringVar(&s.against, "against", "", "run in turns (A B B A …) on another `TARGET`, and compare")
	flags.StringArrayVar(&s.againstSet, "against-set", nil, "run in turns with another value of a variable, `NAME=VALUE`, and compare; repeatable")
	flags.StringArrayVar(&s.failOn, "fail-on", nil, "with --against or --against-set: fail on `CONDITION`, a change from A to B: 'p99 > 10%' (repeatable)")
}

// on reports whether any flag of a series is given.
func (s *series) on(flags *pflag.FlagSet) bool {
	return slices.ContainsFunc([]string{"repeat", "against", "against-set", "fail-on"}, flags.Changed)
}

func (s *series) compares() bool { return s.against != "" || len(s.againstSet) > 0 }

func (s *series) check(q queue) error {
	switch {
	case len(q.words) > 1:
		return console.BadFlag("--repeat repeats one scenario", "run the others separately")
	case s.repeat == 0 && (s.compares() || len(s.failOn) > 0):
		return console.BadFlag("--against, --against-set and --fail-on need --repeat", "for example --repeat 5")
	case s.repeat < 1 || s.repeat > seriesRunsMax:
		return console.BadFlag(fmt.Sprintf("--repeat %d is not a number from 1 to %d", s.repeat, seriesRunsMax), "for example --repeat 5")
	case len(s.failOn) > 0 && !s.compares():
		return console.BadFlag("--fail-on has no meaning without --against or --against-set", "name what to compare with")
	}
	return nil
}

// turns is the order of the sets: A B, B A, A B, … so that what drifts with time affects both alike.
func (s *series) turns() []int {
	var list []int
	for i := range s.repeat {
		switch {
		case !s.compares():
			list = append(list, 0)
		case i%2 == 0:
			list = append(list, 0, 1)
		default:
			list = append(list, 1, 0)
		}
	}
	return list
}

// variant is the order of set B.
func (s *series) variant(o order) order {
	if s.against != "" {
		o.target = s.against
	}
	name := func(text string) string { n, _, _ := strings.Cut(text, "="); return n }
	o.set = slices.DeleteFunc(slices.Clone(o.set), func(text string) bool {
		return slices.ContainsFunc(s.againstSet, func(other string) bool { return name(other) == name(text) })
	})
	o.set = append(o.set, s.againstSet...)
	return o
}

// runSeries runs all turns and compares the sets. It ends at the first run that does not complete: the others cannot be compared.
func runSeries(ctx context.Context, p *console.Process, o *order, s *series, q queue) error {
	if err := s.check(q); err != nil {
		return err
	}
	if q.label == "" {
		q.label = filepath.Base(q.words[0]) + "-" + time.Now().UTC().Format("20060102-150405")
	}
	labels := [2]string{q.label + "/A", q.label + "/B"}
	if err := checkLabel(labels[1]); err != nil {
		return err
	}
	comparing := results.Comparing{FailOn: s.failOn}
	if err := comparing.Check(); err != nil {
		return err
	}
	orders := [2]order{*o, s.variant(*o)}
	if s.compares() { // a mistake in set B would otherwise show after the first run of set A
		if _, err := loadScenario(ctx, p, q.words[0], &orders[1].choice); err != nil {
			return err
		}
	}
	stop, end := watchStops(ctx, p)
	defer end()
	outcomes, turns := []ranRun{}, s.turns()
	for i, set := range turns {
		noteRun(p, q, fmt.Sprintf("── %d of %d: %s (%s)", i+1, len(turns), q.words[0], labels[set]))
		one := q
		one.label = labels[set]
		one.brief = func(w io.Writer, run *document.Run) error {
			_, err := fmt.Fprintf(w, "%s  %s\n", result.Headline(run.Summary.Verdict, run.Summary.Validity), run.Summary.Reason)
			return err
		}
		ran := runOne(ctx, &orders[set], q.words[0], one, stop)
		outcomes = append(outcomes, ran)
		if ran.Error != "" || ran.Ended != result.EndedCompleted {
			break
		}
		if set == 0 {
			comparing.Base = append(comparing.Base, p.Path(ran.Dir))
		} else {
			comparing.New = append(comparing.New, p.Path(ran.Dir))
		}
	}
	if len(comparing.Base)+len(comparing.New) < len(turns) || !s.compares() {
		return s.withoutComparison(p, q, outcomes, len(turns))
	}
	noteRun(p, q, "\n"+runref.CommandIn(p, p.RunsDirectory(o.runs), "compare", "--base", labels[0], "--new", labels[1])+"\n")
	comparing.JUnit = q.junit
	if q.json {
		comparing.Form = console.FormJSON
	}
	if err := comparing.Run(p, nil); err != nil || len(s.failOn) > 0 {
		return err
	}
	return console.ExitWith(worst(outcomes))
}

// withoutComparison reports a series of one set, or one that ended early.
func (s *series) withoutComparison(p *console.Process, q queue, outcomes []ranRun, planned int) error {
	if len(outcomes) < planned {
		fmt.Fprintf(p.Stderr, "%s: the series ended after %d of %d runs\n", p.Name, len(outcomes), planned)
	}
	if q.junit != "" {
		words := slices.Repeat(q.words, planned)
		if err := results.SaveJUnit(p, q.junit, readRan(words, outcomes)); err != nil {
			return err
		}
	}
	if q.json {
		if err := p.PrintJSON(outcomes); err != nil {
			return err
		}
	} else if err := printOutcomes(p, outcomes); err != nil {
		return err
	}
	return console.ExitWith(worst(outcomes))
}
