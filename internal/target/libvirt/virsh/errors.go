package virsh

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/braggdev/bragg/internal/wait"
)

// Error is a call that failed, with the message that virsh printed.
type Error struct {
	command string
	text    string // on one line, of at most errorBytesMax bytes
	gone    bool   // the only message is that domains do not exist
	err     error
}

var (
	ErrTimedOut = errors.New("no answer in time")
	ErrClosed   = errors.New("the target is closed")
	// ErrAgain marks an error after which the same call is worth another attempt.
	ErrAgain = errors.New("try again")
	// errUnreached marks errors of ssh that may pass: a host that is off, or boots.
	errUnreached = errors.New("no way to the host")
)

// Failed is the error of a call, with what virsh printed on its standard error.
func Failed(c Call, printed string, err error) *Error {
	text := tidy(printed)
	return &Error{command: c.Name(), text: text[:min(len(text), errorBytesMax)], gone: noDomain.MatchString(text), err: err}
}

func (e *Error) Error() string {
	if e.text == "" {
		return fmt.Sprintf("virsh %s: %v", e.command, e.err)
	}
	return fmt.Sprintf("virsh %s: %s", e.command, e.text)
}

func (e *Error) Unwrap() error { return e.err }

// tidy makes one line of a message of virsh.
func tidy(text string) string {
	var parts []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "error:"))
		if line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.Join(parts, "; "))
}

// Says reports whether the message of an error of virsh contains one of the texts.
func Says(err error, texts ...string) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, text := range texts {
		if strings.Contains(e.text, text) {
			return true
		}
	}
	return false
}

// IsGone: the subject of the call does not exist. Of a domain that is looked up by its UUID, virsh says no more than that
// it failed to get it, once for each of several; when there is another reason, it says that too.
func IsGone(err error) bool {
	if Says(err, "Domain not found", "no domain with matching", "Storage volume not found", "no storage vol with matching") {
		return true
	}
	var e *Error
	return errors.As(err, &e) && e.gone
}

var noDomain = regexp.MustCompile(`^failed to get domain '[^']*'(; failed to get domain '[^']*')*$`)

// Exists: the object to create exists already.
func Exists(err error) bool { return Says(err, "already exists", "exists already") }

// IsUnchanged: the domain is already in the requested state.
func IsUnchanged(err error) bool {
	return Says(err, "domain is not running", "domain is already running", "Domain is already active", "is already active as")
}

// IsLost reports whether the connection was lost: the call may or may not have taken effect, or cannot have for want of a
// connection.
func IsLost(err error) bool {
	return errors.Is(err, ErrTimedOut) || errors.Is(err, errUnreached) || hungUp(err) || Says(err, "failed to connect to the hypervisor", "End of file while reading data",
		"client socket is closed", "Connection reset", "Connection refused", "Cannot recv data", "Cannot write data",
		"Broken pipe", "internal client error", "connection closed", "Connection timed out", "No route to host",
		"Network is unreachable", "Disconnected from")
}

// hungUp: virsh was writing when its connection was closed, which kills it.
func hungUp(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGPIPE
}

// IsBusy: another job works on the same object; the call may succeed a moment later.
func IsBusy(err error) bool {
	return Says(err, "asynchronous jobs running", "cannot acquire state change lock", "still being allocated",
		"still in use", "is being", "Resource busy", "Device or resource busy", "another operation")
}

const (
	AttemptsMax   = 6
	AttemptDelay  = 100 * time.Millisecond // doubles with each attempt
	attemptBudget = 15 * time.Second       // a call that hangs is not made again
)

// Retry repeats act after transient errors. After such an error settled, if given, checks whether act took effect
// nevertheless.
func Retry(ctx context.Context, act func(context.Context) error, settled func(context.Context) bool) error {
	began := time.Now()
	delay := AttemptDelay
	for attempt := 1; ; attempt++ {
		err := act(ctx)
		if err == nil {
			return nil
		}
		again := IsLost(err) || IsBusy(err) || errors.Is(err, ErrAgain)
		if again && settled != nil && ctx.Err() == nil && settled(ctx) {
			return nil
		}
		if !again || attempt == AttemptsMax || time.Since(began) > attemptBudget {
			return err
		}
		if wait.For(ctx, delay) != nil {
			return err
		}
		delay *= 2
	}
}
