package target

import "fmt"

// StoppedError says that a VM has no power, or stands still and will not go on by itself. Whoever asked for it knows whether that was
// to be so.
type StoppedError struct {
	VM     string // its name
	Reason string // "its system crashed", as far as the provider can tell
}

func (e *StoppedError) Error() string { return fmt.Sprintf("vm %q stopped: %s", e.VM, e.Reason) }
