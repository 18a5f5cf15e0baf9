package cli

import (
	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/session"
)

func newPlan(p *console.Process) *cobra.Command {
	var o order
	var asJSON bool
	var text plan.TextOptions
	cmd := &cobra.Command{
		Use:   "plan SCENARIO",
		Short: "Say everything that a run would do, without doing it",
		Long: "Plan prints VMs and their placement, every device and byte range that would be written, the footprint,\n" +
			"power operations, the duration, warnings, and for each workload its engine, with --fio also the equivalent\n" +
			"fio command. Nothing is touched. Where the target is too small the plan is printed all the same, with what\n" +
			"does not fit and a rehearsal that does, and bragg ends with 69, as it does where the target cannot do a step;\n" +
			"bragg run refuses such a plan.\n\n" + scenarioHelp,
		Example: "  bragg plan four_corners\n" +
			"  bragg plan four_corners --rehearse 60s\n" +
			"  bragg plan vdi --set desktops_per_node=100 --target fake:8 --json",
		Args: console.Between(1, 1),
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
				if err := p.PrintJSON(prepared.Plan); err != nil {
					return err
				}
			} else if err := prepared.Plan.WriteText(p.Stdout, text); err != nil {
				return err
			}
			return prepared.Preflight()
		},
		ValidArgsFunction: completeScenarios,
	}
	o.flags(p, cmd)
	cmd.Flags().BoolVar(&text.Commands, "fio", false, "print the equivalent fio command of each workload")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole plan as JSON")
	return cmd
}
