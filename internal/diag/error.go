package diag

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Exit codes of the process. 2 is the code of Go runtime crashes and never used on purpose.
const (
	ExitPass        = 0
	ExitFailed      = 1   // a threshold was missed
	ExitUndecided   = 3   // a step failed, the run was disturbed or incomplete, the verdict is UNDECIDED
	ExitUsage       = 64  // wrong usage of the command line
	ExitData        = 65  // the scenario, job file or target file has errors
	ExitUnavailable = 69  // target unavailable or lacking a capability
	ExitInternal    = 70  // a bug in bragg
	ExitLocked      = 75  // the target is locked by another run
	ExitRefused     = 77  // refused for safety
	ExitInterrupted = 130 // ended by a signal
)

// Error is an error for the user.
type Error struct {
	Code    string // stable, in kebab case
	Message string // one sentence: action, quoted subject, cause
	Hint    string // what to do next, may be empty
	Exit    int    // exit code of the process; 0 means ExitInternal
	Err     error  // cause, may be nil
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Err)
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// ExitCode returns the exit code of the process for this error.
func (e *Error) ExitCode() int {
	if e.Exit == 0 {
		return ExitInternal
	}
	return e.Exit
}

// Sentence returns the text of err with its hint on one line, where an error is kept as text: errors that were joined are separated. It
// returns "" for nil.
func Sentence(err error) string {
	if err == nil {
		return ""
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	var told *Error
	if errors.As(err, &told) && told.Hint != "" && !strings.Contains(text, told.Hint) {
		text += "; " + told.Hint
	}
	return text
}

// ExitCode returns the exit code for any error: that of the first error in its chain with an exit code, ExitInterrupted for a
// cancelled context, ExitInternal for other errors, ExitPass for nil.
func ExitCode(err error) int {
	if err == nil {
		return ExitPass
	}
	var coder interface{ ExitCode() int }
	if errors.As(err, &coder) {
		return coder.ExitCode()
	}
	if errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	return ExitInternal
}
