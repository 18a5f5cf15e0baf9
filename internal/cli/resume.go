package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/cli/results"
	"github.com/braggdev/bragg/internal/cli/runref"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/session"
)

func newResume(p *console.Process) *cobra.Command {
	var runs string
	var asJSON, allowShell bool
	cmd := &cobra.Command{
		Use:   "resume [RUN]",
		Short: "Clean up and report a crashed run",
		Long: "Resume cleans up one crashed run, like clean, and reports its recorded data. It never continues the load:\n" +
			"data from before and after a pause of unknown length is not one measurement. Without RUN it selects the\n" +
			"newest unfinished run.\n\n" + runref.Help,
		Example: "  bragg resume\n  bragg resume 20250301-151204-k3f9a",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := p.RunsDirectory(runs)
			if len(args) == 0 {
				known, err := session.Unfinished(dir)
				if err != nil {
					return err
				}
				if len(known) == 0 {
					return &diag.Error{
						Code: "no-runs", Message: "no unfinished run in " + dir, Exit: diag.ExitUsage,
						Hint: "bragg runs list shows all runs",
					}
				}
				args = known[len(known)-1:]
			}
			cleaned, err := cleanRuns(cmd.Context(), p, dir, args, allowShell)
			if err != nil {
				return err
			}
			nothing := len(cleaned) == 1 && cleaned[0].Dir == "" // it died before it recorded anything
			switch {
			case asJSON && nothing:
				return errors.Join(p.PrintJSON(nil), cleanedError(p, dir, cleaned), leftError(cleaned))
			case asJSON:
				if err := cleanedError(p, dir, cleaned); err != nil {
					return err
				}
				return errors.Join(results.Print(p, dir, args[0], true), leftError(cleaned))
			}
			if err := printCleaned(p, dir, cleaned, true); err != nil || nothing {
				return errors.Join(err, leftError(cleaned))
			}
			fmt.Fprintln(p.Stdout)
			return errors.Join(results.Print(p, dir, args[0], false), leftError(cleaned))
		},
	}
	allowShellFlag(cmd.Flags(), &allowShell)
	cmd.Flags().BoolVar(&asJSON, console.FormJSON, false, "print the report as JSON; null without recorded data")
	p.RunsFlag(cmd.Flags(), &runs)
	cmd.ValidArgsFunction = runref.Complete(p, &runs)
	return cmd
}
