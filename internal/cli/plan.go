package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/session"
)

func newPlan(p *Process) *cobra.Command {
	var o order
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan SCENARIO",
		Short: "Say everything that a run would do, without doing it",
		Long: "Plan prints VMs and their placement, every device and byte range that would be written, the footprint,\n" +
			"power operations, the duration, and for each workload its engine with the equivalent fio command.\n" +
			"Nothing is touched. It ends with 69 when the target is too small or cannot do a step.\n\n" + scenarioHelp,
		Example: "  bragg plan four_corners\n" +
			"  bragg plan four_corners --rehearse 60s\n" +
			"  bragg plan vdi --set desktops_per_node=100 --target fake:8 --json",
		GroupID: groupScenario,
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := o.make(p, args[0], "")
			if err != nil {
				return err
			}
			prepared, err := session.Prepare(cmd.Context(), made)
			if err != nil {
				return err
			}
			defer prepared.Close()
			if asJSON {
				if err := p.printJSON(prepared.Plan); err != nil {
					return err
				}
			} else if err := prepared.Plan.WriteText(p.Stdout); err != nil {
				return err
			}
			if len(prepared.Plan.Unfit) > 0 {
				fmt.Fprintf(p.Stderr, "bragg: this plan does not fit its target, so a run would be refused\n")
				return exit(diag.ExitUnavailable)
			}
			return nil
		},
		ValidArgsFunction: completeScenarios,
	}
	o.flags(p, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole plan as JSON")
	return cmd
}
