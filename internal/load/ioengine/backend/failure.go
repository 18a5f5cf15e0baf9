package backend

import (
	"fmt"
	"syscall"

	"github.com/braggdev/bragg/internal/diag"
)

// Failure says which operation failed, on a device with a name and a path.
func (s *Slot) Failure(name, path string, result int32) error {
	verb := [...]string{"read", "write", "trim"}[s.Direction]
	if s.Kind >= OpSync {
		verb = "sync"
	}
	var cause error
	if result < 0 {
		cause = syscall.Errno(-result)
	} else {
		cause = fmt.Errorf("only %d bytes were transferred", result)
	}
	message := fmt.Sprintf("%s %d bytes at offset %d of device %q", verb, s.Size, s.Offset, name)
	if s.Kind >= OpSync {
		message = fmt.Sprintf("sync device %q", name)
	}
	if path != name {
		message += fmt.Sprintf(" (%s)", path)
	}
	return &diag.Error{
		Code: "io-error", Message: message, Err: cause, Exit: diag.ExitUndecided,
		Hint: "continue_on_error=all counts errors and goes on",
	}
}
