package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// What the demonstration runs.
const (
	demoScenario = "four_corners"
	demoLength   = 60 * time.Second
)

func newDemo(p *Process) *cobra.Command {
	o := order{target: "local", seed: seedDefault, rehearse: demoLength}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a first scenario on this machine, in about a minute",
		Long: "Demo runs the scenario " + demoScenario + " as a rehearsal on this machine: four virtual nodes with one VM each,\n" +
			"whose disks are files in the runs folder. It does real I/O, needs no other program and no root, and\n" +
			"leaves nothing behind but the bundle and the report.",
		Example: "  bragg demo\n  bragg demo --runs /mnt/ssd/runs",
		GroupID: groupStart,
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := p.runAll(cmd.Context(), &o, queue{words: []string{demoScenario}})
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(p.Stdout, demoNext)
			return err
		},
	}
	p.runsFlag(cmd.Flags(), &o.runs)
	return cmd
}

const demoNext = `
Next:
  bragg scenarios                   what else there is
  bragg plan db_colocation          what a scenario would do, without doing it
  bragg run db_colocation --rehearse 60s
  bragg compare last RUN            two runs side by side
  bragg doctor                      what this machine can do
`
