package target

import (
	"fmt"
	"time"
)

// StoppedError reports that a VM is powered off, or paused and will not resume by itself. Only the caller knows whether
// that was intended.
type StoppedError struct {
	VM     string // its name
	Reason string // "its system crashed", if the provider knows
	// At is when it stopped, or when that was noticed: then it stopped up to Uncertain earlier. The zero time means that
	// the provider does not know.
	At        time.Time
	Uncertain time.Duration
}

func (e *StoppedError) Error() string { return fmt.Sprintf("vm %q stopped: %s", e.VM, e.Reason) }
