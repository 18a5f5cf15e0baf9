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
			hint := "known: " + strings.Join(all, ", ")
			if near := diag.Nearest(name, all); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			list.Add(c.Place("options."+name, "target-unknown-option", hint, fmt.Sprintf("unknown option %q", name)))
		case !slices.Contains(known, given):
			message := fmt.Sprintf("option %s is %q, want one of %s", name, given, strings.Join(known, ", "))
			list.Add(c.Place("options."+name, "target-option", "", message))
		default:
			value[name] = given
		}
	}
	return value, list
}
