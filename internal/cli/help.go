package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// usageTemplate is what --help prints below a verb's description: usage, examples, verbs by heading, flags.
const usageTemplate = `Usage:
  {{.UseLine}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$all := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $all}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{else}}

Verbs:{{range $all}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}

{{.CommandPath}} VERB --help shows examples and flags.{{end}}{{if and .HasAvailableLocalFlags .HasParent}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
`

func setHelp(root *cobra.Command) {
	root.SetUsageTemplate(usageTemplate)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{
		Use:    "help [VERB]",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(found, strings.Join(rest, " "))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	})
}
