package results

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/baseline"
	"github.com/braggdev/bragg/internal/cli/runref"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// NewRuns returns the command runs.
func NewRuns(p *console.Process) *cobra.Command {
	list := &runsListing{}
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List, show and remove runs",
		Long:  "Without a subcommand, runs lists all runs, like runs list.",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return list.print(p)
			}
			return console.UnknownCommand(cmd, args[0])
		},
	}
	list.flags(p, cmd)
	cmd.AddCommand(newRunsList(p), newRunsShow(p), newRunsRemove(p))
	return cmd
}

// runLine is one run as `runs list --json` prints it.
type runLine struct {
	Run       string          `json:"run"`
	Dir       string          `json:"dir"`
	Label     string          `json:"label,omitempty"`
	Scenario  string          `json:"scenario,omitempty"`
	Target    string          `json:"target,omitempty"`
	Created   time.Time       `json:"created"`
	Duration  int64           `json:"duration_ns,omitempty"`
	State     string          `json:"state"` // running, unfinished, sealed, aborted, unreadable
	Verdict   result.Verdict  `json:"verdict,omitempty"`
	Validity  result.Validity `json:"validity,omitempty"`
	Rehearsal bool            `json:"rehearsal,omitempty"`
	Simulated bool            `json:"simulated,omitempty"`
	Error     string          `json:"error,omitempty"`
}

func lineOf(l result.Listed) runLine {
	m := l.Manifest
	line := runLine{
		Run: filepath.Base(l.Dir), Dir: l.Dir, Label: m.Label, Scenario: m.Scenario.Name, Target: m.Target.Name,
		Created: m.Created, State: string(l.State), Rehearsal: m.Rehearsal != nil, Simulated: m.Target.Simulated,
	}
	switch {
	case l.Err != nil:
		line.State, line.Error = "unreadable", l.Err.Error()
	case l.State == result.StateRunning && !l.Live:
		line.State = "unfinished" // its writer died: bragg clean seals it
	}
	if l.Seal != nil {
		line.Duration, line.Verdict, line.Validity = l.Seal.Length, l.Seal.Verdict, l.Seal.Validity
	}
	return line
}

// runsListing has the flags that `runs` and `runs list` share.
type runsListing struct {
	runs   string
	asJSON bool
}

func (l *runsListing) flags(p *console.Process, cmd *cobra.Command) {
	cmd.Flags().BoolVar(&l.asJSON, "json", false, "print JSON")
	p.RunsFlag(cmd.Flags(), &l.runs)
}

func (l *runsListing) print(p *console.Process) error {
	dir := p.RunsDirectory(l.runs)
	all, err := result.List(dir)
	if err != nil {
		return err
	}
	lines := make([]runLine, len(all))
	for i, listed := range all {
		lines[i] = lineOf(listed)
	}
	if l.asJSON {
		return p.PrintJSON(lines)
	}
	left, _ := session.Unfinished(dir) // a list of runs does not need the control folder; clean says what is wrong with it
	return printRuns(p, dir, lines, left)
}

func newRunsList(p *console.Process) *cobra.Command {
	list := &runsListing{}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List all runs, newest first",
		Example: "  bragg runs list\n  bragg runs list --json | jq -r '.[] | select(.verdict == \"FAIL\") | .run'",
		Args:    console.Between(0, 0),
		RunE:    func(*cobra.Command, []string) error { return list.print(p) },
	}
	list.flags(p, cmd)
	return cmd
}

// printRuns prints the table of runs. Those in left have a journal, also if they are sealed: they skipped their cleanup.
func printRuns(p *console.Process, dir string, lines []runLine, left []string) error {
	if len(lines) == 0 {
		_, err := fmt.Fprintf(p.Stdout, "No runs in %s. Start one: bragg demo\n", textio.Lines(dir))
		return err
	}
	t := console.Table{Head: []string{"RUN", "SCENARIO", "TARGET", "STARTED", "TOOK", "VERDICT", "LABEL"}}
	unfinished := false
	for _, l := range lines {
		if l.State == "unreadable" {
			t.Add(l.Run, "–", "–", "–", "–", "unreadable", "")
			continue
		}
		scenario, verdict, took := l.Scenario, result.Headline(l.Verdict, l.Validity), "–"
		if l.Rehearsal {
			scenario += " (rehearsal)"
		}
		if l.Duration > 0 {
			took = unit.FormatDuration(time.Duration(l.Duration))
		}
		if verdict == "" || l.State == string(result.StateAborted) {
			verdict = l.State
		}
		unfinished = unfinished || l.State == "unfinished" || slices.Contains(left, l.Run) && l.State != "running"
		t.Add(l.Run, scenario, l.Target, l.Created.Local().Format("2006-01-02 15:04"), took, verdict, l.Label)
	}
	if err := t.Print(p.Stdout); err != nil {
		return err
	}
	if unfinished {
		_, err := fmt.Fprintf(p.Stdout, "\nAn unfinished run needs cleanup:\n  %s\n",
			textio.Lines(runref.CommandIn(p, dir, "clean")))
		return err
	}
	return nil
}

func newRunsRemove(p *console.Process) *cobra.Command {
	var runs string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rm RUN...",
		Short: "Remove runs and their data",
		Long: "Rm deletes the folders of runs. It refuses active runs, runs of a pinned baseline, and crashed runs before bragg clean: their journals\n" +
			"are needed to find what they left on the target.\n\n" + runref.Help,
		Example: "  bragg runs rm 20250301-1512-k3f9\n  bragg runs rm last",
		Args:    console.Between(1, -1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := p.RunsDirectory(runs)
			var faults []error
			removed := removedLine{Removed: []string{}}
			for _, word := range args {
				id, err := removeRun(p, dir, word)
				if err != nil {
					faults = append(faults, err)
					continue
				}
				removed.Removed = append(removed.Removed, id)
				if !asJSON {
					fmt.Fprintf(p.Stdout, "removed %s\n", id)
				}
			}
			if asJSON {
				faults = append(faults, p.PrintJSON(removed))
			}
			return errors.Join(faults...)
		},
	}
	console.JSONFlag(cmd.Flags(), &asJSON)
	p.RunsFlag(cmd.Flags(), &runs)
	cmd.ValidArgsFunction = runref.Complete(p, &runs)
	return cmd
}

// removedLine is the JSON output of commands that remove.
type removedLine struct {
	Removed []string `json:"removed"`
}

// removeRun removes one run and returns its id.
func removeRun(p *console.Process, runs, word string) (string, error) {
	dir, err := runref.Find(p, runs, word)
	if err != nil {
		return "", err
	}
	if filepath.Dir(dir) != filepath.Clean(runs) {
		return "", &diag.Error{
			Code: "foreign-bundle", Message: strconv.Quote(word) + " is not in the runs folder " + runs,
			Hint: "name its folder with --runs DIR, or remove a copied bundle with rm", Exit: diag.ExitRefused,
		}
	}
	id := filepath.Base(dir)
	pins, err := baseline.Read(runs)
	if err != nil {
		return "", err
	}
	if scenario := pins.Of(id); scenario != "" {
		return "", &diag.Error{
			Code: "pinned-run", Message: "run " + id + " is the baseline of scenario " + scenario, Exit: diag.ExitRefused,
			Hint: "pin another, or unpin it: " + runref.CommandIn(p, runs, "baseline", "unset", scenario),
		}
	}
	b, err := result.Open(dir)
	if err == nil {
		state, live := b.State(), b.Live()
		if err := b.Close(); err != nil {
			return "", err
		}
		if state == result.StateRunning && !live {
			return "", &diag.Error{
				Code: "unclean-run", Message: "run " + id + " crashed and was not cleaned",
				Hint: "clean it up first: " + runref.CommandIn(p, runs, "clean", id), Exit: diag.ExitRefused,
			}
		}
	}
	err = result.Remove(runs, id)
	if errors.Is(err, result.ErrBusy) {
		return "", &diag.Error{
			Code: "live-run", Message: "run " + id + " is active", Exit: diag.ExitRefused,
			Hint: "stop it first with Ctrl-C or SIGTERM",
		}
	}
	return id, err
}
