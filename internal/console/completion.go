package console

import (
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// Completer is cobra's completion function: it returns the matching words.
type Completer = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// Offer is a Completer for fixed words, each offered once per line.
func Offer(words ...string) Completer {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		return Fitting(words, args, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// Fitting returns the words that begin with begun and are not on the line yet. A name of unknown origin that could be taken for a
// flag or for two lines is skipped.
func Fitting(words, args []string, begun string) []string {
	var out []string
	for _, w := range words {
		name, _, _ := strings.Cut(w, "\t")
		described := strings.Replace(w, "\t", " ", 1)
		if strings.HasPrefix(name, begun) && !strings.HasPrefix(name, "-") && !slices.Contains(args, name) &&
			!strings.ContainsFunc(described, unicode.IsControl) {
			out = append(out, w)
		}
	}
	return out
}
