package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braggdev/bragg/internal/cli/runref"
	"github.com/braggdev/bragg/internal/cli/targets"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/textio"
)

func newClean(p *console.Process) *cobra.Command {
	var runs string
	var asJSON, allowShell bool
	cmd := &cobra.Command{
		Use:   "clean [RUN...]",
		Short: "Clean up after crashed runs",
		Long: "Clean reads the journals in the runs folder. For every run that crashed, was killed or skipped its cleanup,\n" +
			"it powers on nodes that the run powered off and waits until they answer, executes the teardown of the scenario,\n" +
			"undoes its steps, deletes its VMs and their disks, and seals the bundle as aborted, so that it can be reported.\n" +
			"Active runs are skipped. Clean can be repeated at any time.\n\n" + runref.Help,
		Example: "  bragg clean\n  bragg clean 20250301-151204-k3f9a",
		Args:    console.Between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := p.RunsDirectory(runs)
			cleaned, err := cleanRuns(cmd.Context(), p, dir, args, allowShell)
			if err != nil {
				return err
			}
			if asJSON {
				return printCleanedJSON(p, dir, cleaned)
			}
			return errors.Join(printCleaned(p, dir, cleaned, len(args) > 0), leftError(cleaned))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	allowShellFlag(cmd.Flags(), &allowShell)
	p.RunsFlag(cmd.Flags(), &runs)
	cmd.ValidArgsFunction = runref.Complete(p, &runs)
	return cmd
}

// allowShellFlag adds --allow-shell to a command that may execute the teardown of a dead run.
func allowShellFlag(flags *pflag.FlagSet, allow *bool) {
	flags.BoolVar(allow, "allow-shell", false, "allow the teardown of a scenario to run programs; only for folders and scenarios that you trust")
}

// cleanRuns cleans the runs that words name, or all dead runs without words. An interrupt ends it once nodes have power.
func cleanRuns(ctx context.Context, p *console.Process, runs string, words []string, allowShell bool) ([]session.Cleaned, error) {
	stop, end := p.WatchSignals(ctx, p.Saying("stopping; resume with: "+textio.Lines(runref.CommandIn(p, runs, append([]string{"clean"}, words...)...))))
	defer end()
	var only []string
	for _, word := range words {
		id, err := findJournalled(p, runs, word)
		if err != nil {
			return nil, err
		}
		only = append(only, id)
	}
	return session.Clean(stop.Begun, session.Cleaning{
		Runs: runs, Only: only, Program: targets.Program(p), AllowShell: allowShell,
		Say: func(run, text string) { fmt.Fprintf(p.Stderr, "%s: %s\n", run, textio.Lines(text)) },
	})
}

// findJournalled finds a run that may have no bundle: a run that died early has only a journal.
func findJournalled(p *console.Process, runs, word string) (string, error) {
	known, err := session.Unfinished(runs)
	if err != nil {
		return "", err
	}
	for _, id := range known {
		if id == word {
			return id, nil
		}
	}
	dir, err := runref.Find(p, runs, word)
	if err != nil {
		return "", err
	}
	return filepath.Base(dir), nil
}

func printCleaned(p *console.Process, runs string, cleaned []session.Cleaned, named bool) error {
	if len(cleaned) == 0 {
		text := "Nothing to clean."
		if named {
			text = "The run is clean."
		}
		_, err := fmt.Fprintln(p.Stdout, text)
		return err
	}
	for _, c := range cleaned {
		fmt.Fprintf(p.Stdout, "%s: %s\n", c.Run, textio.Lines(whatWasDone(p, runs, c)))
	}
	return cleanedError(p, runs, cleaned)
}

func whatWasDone(p *console.Process, runs string, c session.Cleaned) string {
	switch {
	case c.Live:
		return "skipped: the run is active, or another run or cleaning uses its target; rerun when that has ended"
	case c.Err != nil:
		return "cleanup failed"
	}
	done := slices.Clone(c.Undone)
	if c.Sealed {
		done = append(done, "bundle sealed as aborted (show: "+runref.CommandIn(p, runs, "report", c.Run)+")")
	}
	if len(done) == 0 {
		return "journal removed; nothing else was left"
	}
	return strings.Join(done, "; ")
}

// cleanedError joins the failures; skipped runs make it ExitLocked.
func cleanedError(p *console.Process, runs string, cleaned []session.Cleaned) error {
	var faults []error
	live := false
	for _, c := range cleaned {
		if c.Err != nil {
			faults = append(faults, cleanFault(c, runref.CommandIn(p, runs, "clean", c.Run)))
		}
		live = live || c.Live
	}
	if len(faults) == 0 && live {
		return console.ExitWith(diag.ExitLocked)
	}
	return errors.Join(faults...)
}

// cleanFault is why a run was not cleaned, and what to do.
func cleanFault(c session.Cleaned, again string) error {
	fault := &diag.Error{
		Code: "clean-failed", Message: "clean run " + c.Run, Err: c.Err, Exit: diag.ExitUndecided, Hint: "fix the cause and rerun, it resumes: " + again,
	}
	var refused *diag.Error
	switch {
	case errors.Is(c.Err, context.Canceled):
		return &diag.Error{Code: "interrupted", Message: "the cleaning of run " + c.Run + " was interrupted", Exit: diag.ExitInterrupted, Hint: "rerun, it resumes: " + again}
	case errors.As(c.Err, &refused) && refused.Exit == diag.ExitRefused && refused.Hint != "":
		fault.Exit, fault.Hint = refused.Exit, refused.Hint+"\n"+fault.Hint
	case errors.Is(c.Err, durable.ErrForeign):
		fault.Exit = diag.ExitRefused
	}
	return fault
}

// leftError names what clean cannot remove: it is outside of the VMs, and the agents that could remove it are dead.
func leftError(cleaned []session.Cleaned) error {
	var faults []error
	for _, c := range cleaned {
		for _, what := range c.Left {
			faults = append(faults, &diag.Error{
				Code: "left-outside", Message: fmt.Sprintf("run %s was killed and may have left %s", c.Run, what), Exit: diag.ExitUndecided,
				Hint: "remove it there by hand, or run the scenario again: its prefill replaces this data, and its end removes it",
			})
		}
	}
	return errors.Join(faults...)
}

// cleanedLine is one run as `clean --json` prints it.
type cleanedLine struct {
	session.Cleaned
	Error string `json:"error,omitempty"`
}

func printCleanedJSON(p *console.Process, runs string, cleaned []session.Cleaned) error {
	lines := []cleanedLine{}
	for _, c := range cleaned {
		line := cleanedLine{Cleaned: c}
		if c.Err != nil {
			line.Error = c.Err.Error()
		}
		lines = append(lines, line)
	}
	if err := p.PrintJSON(lines); err != nil {
		return err
	}
	return errors.Join(cleanedError(p, runs, cleaned), leftError(cleaned))
}
