package result

import (
	"encoding/json"
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
)

// Findings are the findings of a summary.
type Findings []finding.Finding

// UnmarshalJSON reads findings. If they cannot be read, a single finding reports that, because the rest of the summary is still
// usable.
func (f *Findings) UnmarshalJSON(text []byte) error {
	var all []finding.Finding
	if err := json.Unmarshal(text, &all); err != nil {
		all = []finding.Finding{{Code: "findings-unreadable", Severity: finding.Undecided,
			Claim: fmt.Sprintf("The findings of this bundle cannot be read: %v.", err)}}
	}
	*f = all
	return nil
}
