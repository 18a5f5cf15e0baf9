package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/braggdev/bragg/internal/report/document"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/textio"
)

// The scenario of the demo, and its two tenants.
const (
	demoScenario = "noisy_neighbor"
	demoDatabase = "Database"
	demoNeighbor = "Neighbor"
	demoMaxFull  = 95 // percent: the demo takes little, and disks of workstations are often fuller than the 70 % of other runs
)

func newDemo(p *console.Process) *cobra.Command {
	o := order{target: "local", seed: seedDefault, maxFull: demoMaxFull}
	asJSON := false
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a first scenario on this machine, in about a minute",
		Long: "Demo calibrates the storage of the runs folder for 5 s, then runs the scenario " + demoScenario + " at a third of its\n" +
			"throughput, or less if this machine is short of CPU: a database at a fixed rate, a scanning neighbor, and a VM\n" +
			"that is killed and restarted. VMs are processes; their disks are files in the runs folder. Demo does real I/O,\n" +
			"writes less than 1 GiB, needs no other program and no root, and leaves only the bundle and the report. Its exit\n" +
			"code reports whether the demo ran, not the performance of this machine.",
		Example: "  bragg demo\n  bragg demo --runs /mnt/ssd/runs",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			progress := p.Stdout
			if asJSON {
				progress = p.Stderr
			}
			rates, err := calibrateDemo(cmd.Context(), p, progress, p.RunsDirectory(o.runs))
			if err != nil {
				return err
			}
			o.set = []string{fmt.Sprintf("database_iops=%d", rates.database), fmt.Sprintf("neighbor_mib_per_s=%d", rates.neighbor)}
			q := queue{words: []string{demoScenario}, brief: demoBrief, json: asJSON, shows: true}
			if !asJSON {
				q.next = fmt.Sprintf(demoNext, demoScenario, strings.Join(o.set, " --set "))
			}
			return runAll(cmd.Context(), p, &o, q)
		},
	}
	p.RunsFlag(cmd.Flags(), &o.runs)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the outcome as JSON instead of the live view and summary")
	return cmd
}

const demoNext = `
Next:
  bragg report last                 every number of this run
  bragg run %s --set %s
                                    the same run again, which bragg compare then holds against this one
  bragg scenarios                   what else there is
  bragg plan db_colocation          what a scenario would do, without doing it
`

// demoBrief prints the four answers of the demo: the baseline, the cost of the neighbor, the outage with its recovery, and the
// validity of the numbers.
func demoBrief(w io.Writer, run *document.Run) error {
	story := readDemo(&run.Summary)
	for _, line := range [][2]string{
		{"baseline", story.baseline()}, {"neighbor", story.neighbor()}, {"outage", story.outage()}, {"numbers", story.validity()},
	} {
		if _, err := fmt.Fprintf(w, "  %-10s%s\n", line[0], textio.Lines(line[1])); err != nil {
			return fmt.Errorf("print the answers of the demo: %w", err)
		}
	}
	return nil
}
