package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/unit"
)

// Lasting describes until when a load is extended beyond its runtime.
type Lasting struct {
	Over []LastingOver `json:"over"`    // the load ends when all of these are over
	Most time.Duration `json:"most_ns"` // maximum extension
}

// LastingOver is one step that a load covers.
type LastingOver struct {
	Step int    `json:"step"` // id
	Name string `json:"name"`
	// Partly: the load ends within the step, or the step waits for it; After counts from the beginning of the step. Otherwise the
	// whole step must be over.
	Partly bool          `json:"partly,omitempty"`
	After  time.Duration `json:"after_ns,omitempty"`
}

// Longest returns the longest time that a load with this runtime can take.
func (l *Lasting) Longest(runtime time.Duration) time.Duration {
	if l == nil || runtime == 0 {
		return runtime
	}
	return runtime + l.Most
}

// String describes when the load ends: "step 9 (test.Wait) ends".
func (l *Lasting) String() string {
	parts := make([]string, len(l.Over))
	for i, o := range l.Over {
		parts[i] = fmt.Sprintf("step %d (%s) ends", o.Step, o.Name)
		if o.Partly {
			parts[i] = fmt.Sprintf("%s into step %d (%s)", unit.FormatDuration(o.After), o.Step, o.Name)
		}
	}
	return strings.Join(parts, " and ")
}
