package cli

import (
	"github.com/spf13/cobra"

	collected "github.com/braggdev/bragg/internal/collect/builtin"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/session"
	targetbuiltin "github.com/braggdev/bragg/internal/target/builtin"
)

func newPlan(p *console.Process) *cobra.Command {
	var o order
	var asJSON bool
	var text plan.TextOptions
	cmd := &cobra.Command{
		Use:   "plan SCENARIO",
		Short: "Show what a run would do",
		Long: "Plan prints VMs and their placement, every device and byte range to be written, the footprint, power\n" +
			"operations, the duration, warnings, and the engine of each workload; --fio adds the equivalent fio command.\n" +
			"It reads each source of counters once. It changes nothing. If the target is too small, the plan shows what does not fit and a rehearsal that does.\n" +
			"The exit code is then 69, as for a target that does not support a step; bragg run refuses such a plan.\n\n" + scenarioHelp,
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
			if c, err := targetbuiltin.Load(made.Target); err == nil && len(c.Sources) > 0 {
				sources, problems := collected.Check(cmd.Context(), &c, prepared.Inventory.Nodes)
				prepared.Plan.Sources, prepared.Plan.Warnings = sources, append(prepared.Plan.Warnings, problems...)
			}
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
