package ioengine

import (
	"fmt"
	"syscall"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
)

// toldMax bounds how many errors of one worker are reported.
const toldMax = 1000

// TellErrors calls say for errors after which a job with error_dump continues, on the thread that drives the load. It
// must be called before Run.
func (r Run) TellErrors(say func(error)) { r.shared.say = say }

// operationError says which operation failed. It ends the workload unless continue_on_error holds for it.
func operationError(s *backend.Slot, name, path string, result int32) error {
	verb := [...]string{"read", "write", "trim"}[s.Direction]
	if s.Kind >= backend.OpSync {
		verb = "sync"
	}
	var cause error
	if result < 0 {
		cause = syscall.Errno(-result)
	} else {
		cause = fmt.Errorf("only %d bytes were transferred", result)
	}
	message := fmt.Sprintf("%s %d bytes at offset %d of device %q", verb, s.Size, s.Offset, name)
	if s.Kind >= backend.OpSync {
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
