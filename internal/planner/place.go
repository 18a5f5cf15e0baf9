package planner

import (
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/scenario"
)

// Defaults of a VM group, as in X-Ray.
const (
	vcpusDefault    = 2
	ramBytesDefault = 2048 << 20
)

// namePrefixes returns for each group the prefix of its VMs' names. Groups whose names differ only in replaced characters
// get a numeric suffix, so that VM names stay unique.
func namePrefixes(groups []scenario.Group) map[string]string {
	prefixes, taken := map[string]string{}, map[string]bool{}
	for _, g := range groups {
		base := strings.Map(func(r rune) rune {
			if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				return r
			}
			return '_'
		}, g.Name)
		prefix := base
		for n := 2; taken[strings.ToLower(prefix)]; n++ {
			prefix = fmt.Sprintf("%s_%d", base, n)
		}
		taken[strings.ToLower(prefix)] = true
		prefixes[g.Name] = prefix
	}
	return prefixes
}
