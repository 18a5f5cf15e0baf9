package results

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/baseline"
	"github.com/braggdev/bragg/internal/cli/runref"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
)

// NewBaseline returns the command baseline.
func NewBaseline(p *console.Process) *cobra.Command {
	show := &baselineShow{}
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "Pin runs that later runs are judged against",
		Long: "A baseline is one set of repeated runs of a scenario that is pinned in the runs folder. A threshold such as\n" +
			"'expect: p99 no worse than baseline' judges every later run against it, bragg compare --base pinned and bragg trend use it,\n" +
			"and its runs cannot be removed. Without a subcommand, baseline shows all baselines.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return console.UnknownCommand(cmd, args[0])
			}
			return show.print(p, "")
		},
	}
	show.flags(p, cmd)
	cmd.AddCommand(newBaselineSet(p), newBaselineShow(p), newBaselineUnset(p))
	return cmd
}

func newBaselineSet(p *console.Process) *cobra.Command {
	set := &baselineShow{}
	cmd := &cobra.Command{
		Use:   "set RUN...",
		Short: "Pin repeated runs of a scenario",
		Long: "Set pins completed runs, which replace the earlier baseline of their scenario. They must be repetitions of each other: same\n" +
			"variables, target and data. At least three are needed to judge a later run, since only repeated runs show how much they\n" +
			"vary; bragg run --repeat 5 --label NAME makes them. A label names all runs that have it.\n\n" + runref.Help,
		Example: "  bragg run oltp --repeat 5 --label release-1\n  bragg baseline set release-1/A",
		Args:    console.Between(1, -1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := p.RunsDirectory(set.runs)
			var ids []string
			for _, word := range runref.Repetitions(p, dir, args) {
				found, err := runref.Find(p, dir, word)
				if err != nil {
					return err
				}
				if filepath.Dir(p.Path(found)) != filepath.Clean(p.Path(dir)) {
					return &diag.Error{Code: "foreign-bundle", Message: word + " is not in the runs folder " + dir, Exit: diag.ExitUsage,
						Hint: "copy the bundle into it, or name its folder with --runs DIR"}
				}
				if id := filepath.Base(found); !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
			scenario, err := baseline.Set(dir, ids, time.Now())
			if err != nil {
				return err
			}
			if set.asJSON {
				return set.print(p, scenario)
			}
			fmt.Fprintf(p.Stdout, "The baseline of %s is %s.\n", textio.Line(scenario), strings.Join(ids, ", "))
			if len(ids) < baseline.RunsMin {
				fmt.Fprintf(p.Stdout, "%s cannot decide about a later run: pin at least %d repetitions (bragg run --repeat).\n",
					textio.Plural(len(ids), "run"), baseline.RunsMin)
			}
			return nil
		},
	}
	set.flags(p, cmd)
	cmd.ValidArgsFunction = runref.Complete(p, &set.runs)
	return cmd
}

// baselineShow has the flags that the commands of baselines share.
type baselineShow struct {
	runs   string
	asJSON bool
}

func (s *baselineShow) flags(p *console.Process, cmd *cobra.Command) {
	console.JSONFlag(cmd.Flags(), &s.asJSON)
	p.RunsFlag(cmd.Flags(), &s.runs)
}

func newBaselineShow(p *console.Process) *cobra.Command {
	show := &baselineShow{}
	cmd := &cobra.Command{
		Use:     "show [SCENARIO]",
		Short:   "Show the pinned runs",
		Example: "  bragg baseline show\n  bragg baseline show oltp --json",
		Args:    console.Between(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return show.print(p, strings.Join(args, ""))
		},
	}
	show.flags(p, cmd)
	return cmd
}

// baselineLine is the baseline of one scenario as --json prints it.
type baselineLine struct {
	Scenario string    `json:"scenario"`
	Pinned   time.Time `json:"pinned"`
	Runs     []string  `json:"runs"`
	Missing  string    `json:"missing,omitempty"` // why it cannot be used
}

// print shows all baselines, or that of one scenario.
func (s *baselineShow) print(p *console.Process, scenario string) error {
	dir := p.RunsDirectory(s.runs)
	pins, err := baseline.Read(dir)
	if err != nil {
		return err
	}
	lines := []baselineLine{}
	for name, pin := range pins.Baselines {
		if scenario == "" || scenario == name {
			lines = append(lines, baselineLine{name, pin.Pinned, pin.Names(), baseline.Of(dir, name).Missing})
		}
	}
	slices.SortFunc(lines, func(a, b baselineLine) int { return strings.Compare(a.Scenario, b.Scenario) })
	if scenario != "" && len(lines) == 0 {
		return noBaseline(scenario)
	}
	if s.asJSON {
		return p.PrintJSON(lines)
	}
	if len(lines) == 0 {
		_, err := fmt.Fprintf(p.Stdout, "No baseline in %s. Pin repeated runs: bragg baseline set RUN...\n", textio.Lines(dir))
		return err
	}
	t := console.Table{Head: []string{"SCENARIO", "PINNED", "RUNS", "NOTE"}}
	for _, l := range lines {
		t.Add(l.Scenario, l.Pinned.Local().Format("2006-01-02 15:04"), strings.Join(l.Runs, " "), l.Missing)
	}
	return t.Print(p.Stdout)
}

func newBaselineUnset(p *console.Process) *cobra.Command {
	unset := &baselineShow{}
	cmd := &cobra.Command{
		Use:     "unset SCENARIO",
		Short:   "Unpin the baseline of a scenario",
		Long:    "Unset unpins the runs of a scenario; the runs stay.",
		Example: "  bragg baseline unset oltp",
		Args:    console.Between(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			switch found, err := baseline.Unset(p.RunsDirectory(unset.runs), args[0]); {
			case err != nil:
				return err
			case !found:
				return noBaseline(args[0])
			}
			if unset.asJSON {
				return unset.print(p, "") // those that stay
			}
			_, err := fmt.Fprintf(p.Stdout, "%s has no baseline any more.\n", textio.Line(args[0]))
			return err
		},
	}
	unset.flags(p, cmd)
	return cmd
}

func noBaseline(scenario string) error {
	return &diag.Error{Code: "no-baseline", Exit: diag.ExitUsage, Message: "no baseline is pinned for scenario " + textio.Line(scenario),
		Hint: "pin repeated runs: bragg baseline set RUN..."}
}

// pinnedWord names the pinned runs where a set of runs is named.
const pinnedWord = "pinned"

// pinnedRuns replaces the word "pinned" by the runs of the baseline of a scenario.
func pinnedRuns(dir string, words []string, scenario func() (string, error)) ([]string, error) {
	at := slices.Index(words, pinnedWord)
	if at < 0 {
		return words, nil
	}
	name, err := scenario()
	if err != nil {
		return nil, err
	}
	pins, err := baseline.Read(dir)
	if err != nil {
		return nil, err
	}
	pin, found := pins.Baselines[name]
	if !found {
		return nil, noBaseline(name)
	}
	if missing := baseline.Of(dir, name).Missing; missing != "" {
		return nil, &diag.Error{Code: "no-baseline", Exit: diag.ExitData, Message: "the baseline of " + textio.Line(name) + " cannot be used",
			Err: errors.New(missing), Hint: "pin it again: bragg baseline set RUN..."}
	}
	return slices.Concat(words[:at], pin.Names(), words[at+1:]), nil
}
