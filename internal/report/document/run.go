package document

import (
	"encoding/json"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// Run is all data of one bundle that a report needs.
type Run struct {
	Manifest result.Manifest
	Summary  result.Summary
	Plan     json.RawMessage // plan.json as written; may be empty
	Events   []interval.Event
	Going    time.Duration // age of a run that has not ended; 0 if it has ended
}
