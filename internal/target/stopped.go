package target

import (
	"fmt"
	"time"
)

// StoppedError says that a VM is powered off, or paused and will not resume by itself. Only the caller knows whether that
// was intended.
type StoppedError struct {
	VM     string // its name
	Reason string // "its system crashed", as far as the provider can tell
	// At is when it stopped, or when that was noticed: then it was up to Uncertain earlier. The zero time is one that the provider cannot tell.
	At        time.Time
	Uncertain time.Duration
}

func (e *StoppedError) Error() string { return fmt.Sprintf("vm %q stopped: %s", e.VM, e.Reason) }
