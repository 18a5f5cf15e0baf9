package cli

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
)

// TestEveryCommandHasJSON holds that a program can read whatever a command prints.
func TestEveryCommandHasJSON(t *testing.T) {
	without := map[string]string{
		"bragg io":               "has fio's --output-format=json",
		"bragg completion":       "prints a script for a shell",
		"bragg exporter netapp":  "serves and prints the format of Prometheus",
		"bragg exporter nutanix": "serves and prints the format of Prometheus",
		"bragg exporter vsphere": "serves and prints the format of Prometheus",
		"bragg kube install":     "prints manifests as YAML, which kubectl reads",
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			visit(c)
		}
		if cmd.Hidden || cmd.HasSubCommands() && cmd.Flags().Lookup(console.FormJSON) == nil { // alone it prints its help
			return
		}
		_, excused := without[cmd.CommandPath()]
		has := cmd.Flags().Lookup(console.FormJSON) != nil
		if has == excused {
			t.Errorf("%s: --json %v, excused %v", cmd.CommandPath(), has, excused)
		}
		if cmd.Flags().Lookup("format") != nil && !has {
			t.Errorf("%s has --format and no --json", cmd.CommandPath())
		}
	}
	visit(newRoot(&console.Process{Getenv: func(string) string { return "" }}))
}
