package cli

import (
	"fmt"
	"runtime"

	"github.com/braggdev/bragg/internal/console"

	"github.com/spf13/cobra"
)

func newVersion(p *console.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of bragg",
		Args:  console.Between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return p.PrintJSON(map[string]string{
					"bragg": console.Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			_, err := fmt.Fprint(p.Stdout, console.VersionLine("bragg"))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
