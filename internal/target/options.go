package target

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// ReadOptions reads the options of a target file, with defaults filled in. choices are the options with fixed values, the default
// first; texts are those that are free text.
func (c *Config) ReadOptions(choices map[string][]string, texts ...string) (map[string]string, diag.List) {
	var list diag.List
	place := diag.Position{File: c.File}
	value := map[string]string{}
	for name, known := range choices {
		value[name] = known[0]
	}
	for _, name := range slices.Sorted(maps.Keys(c.Options)) {
		known, ok := choices[name]
		switch given := c.Options[name]; {
		case slices.Contains(texts, name):
			value[name] = given
		case !ok:
			all := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(choices)), texts)))
			list.Add(diag.Diagnostic{Code: "target-unknown-option", Pos: place, Message: fmt.Sprintf("unknown option %q", name),
				Hint: "known: " + strings.Join(all, ", ")})
		case !slices.Contains(known, given):
			list.Errorf(place, "target-option", "option %s is %q, want one of %s", name, given, strings.Join(known, ", "))
		default:
			value[name] = given
		}
	}
	return value, list
}
