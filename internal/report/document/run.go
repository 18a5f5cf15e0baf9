package document

import (
	"encoding/json"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// Run is everything that a report reads of one bundle.
type Run struct {
	Manifest result.Manifest
	Summary  result.Summary
	Plan     json.RawMessage // plan.json as written; may be empty
	Events   []interval.Event
	Going    time.Duration // for how long a run has been going on that has not ended; 0: it has
}
