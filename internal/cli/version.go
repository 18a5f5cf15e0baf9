package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is set by the linker when a release is built; otherwise it is the version that Go recorded.
var Version = ""

// version returns what this program calls itself: "1.2.0", "devel 1a2b3c4d", "devel".
func version() string {
	if Version != "" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 8 {
			return "devel " + s.Value[:8]
		}
	}
	return "devel"
}

// versionLine is what `bragg version` and `bragg --version` print.
func versionLine() string {
	return fmt.Sprintf("bragg %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersion(p *Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of bragg",
		GroupID: groupHouse,
		Args:    between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return p.printJSON(map[string]string{
					"bragg": version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			_, err := fmt.Fprint(p.Stdout, versionLine())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
