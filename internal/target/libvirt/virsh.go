package libvirt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// Limits of single calls. A host that is switched off is noticed by the first of them.
const (
	queryLimit   = 30 * time.Second
	silentLimit  = 8 * time.Second // of a host that did not answer before
	changeLimit  = 2 * time.Minute
	copyLimit    = 6 * time.Hour // a disk, over whatever storage there is
	migrateLimit = time.Hour

	outputBytesMax  = 64 << 20
	printedBytesMax = 256 << 10 // of errors: a line for each domain of a call
	errorBytesMax   = 1000
)

// call is one run of virsh.
type call struct {
	uri string
	// args are the command and its arguments, each value as "--option=value": whatever a value begins with, it is never
	// taken for an option.
	args  []string
	stdin []byte // read by the command as /dev/stdin
	limit time.Duration
	// line, if any, gets what the command prints line by line, as soon as it prints it. The command is one that goes on, and ends
	// with this program in whatever way that ends.
	line func(string)
}

// runner runs one call and returns what it printed. Every contact with libvirt goes through one, which is also where
// tests let calls fail.
type runner func(ctx context.Context, c call) ([]byte, error)

// callError is a call that failed, with what virsh said about it.
type callError struct {
	command string
	text    string // on one line, of at most errorBytesMax bytes
	gone    bool   // all that it said is that domains are not there
	err     error
}

// failed is the error of a call, with what virsh printed about it.
func failed(c call, printed string, err error) *callError {
	text := tidy(printed)
	return &callError{command: c.name(), text: text[:min(len(text), errorBytesMax)], gone: noDomain.MatchString(text), err: err}
}

func (e *callError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("virsh %s: %v", e.command, e.err)
	}
	return fmt.Sprintf("virsh %s: %s", e.command, e.text)
}

func (e *callError) Unwrap() error { return e.err }

var errTimedOut = errors.New("no answer in time")

// passedOn are the variables of the environment that virsh needs. No others are handed on: some of them are
// secrets of the target file.
var passedOn = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "KRB5CCNAME",
}

// runVirsh is the runner that runs the program.
func runVirsh(ctx context.Context, c call) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	cmd := exec.CommandContext(bounded, "virsh", append([]string{"--quiet", "--connect=" + c.uri}, c.args...)...)
	cmd.Env = []string{"LC_ALL=C"} // messages are told apart by their text
	for _, name := range passedOn {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stdin = bytes.NewReader(c.stdin)
	out, errs := &boundedBuffer{limit: outputBytesMax}, &boundedBuffer{limit: printedBytesMax}
	cmd.Stdout, cmd.Stderr = out, errs
	if c.line != nil {
		cmd.Stdout = &lineWriter{line: c.line}
	}
	// A session of its own: the terminal's interrupt is for the controller, which still has to undo things with virsh; and a
	// libvirt that wants a password finds nobody to ask.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.line != nil {
		// The signal comes with the end of the thread that started the process, which must not be one that the runtime ends.
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case err == nil && !out.cut:
		return out.Bytes(), nil
	case err == nil:
		err = fmt.Errorf("it printed more than %d bytes", outputBytesMax)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case bounded.Err() != nil:
		err = errTimedOut
	}
	if errors.Is(err, errTimedOut) || ctx.Err() != nil {
		errs.Reset()
	}
	return nil, failed(c, errs.String(), err)
}

// name is the command of a call, for messages.
func (c call) name() string {
	if len(c.args) == 0 {
		return ""
	}
	name, _, _ := strings.Cut(c.args[0], " ")
	return name
}

// boundedBuffer keeps what is written to it up to a limit.
type boundedBuffer struct {
	bytes.Buffer
	limit int
	cut   bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	keep := min(len(p), b.limit-b.Len())
	b.cut = b.cut || keep < len(p)
	_, _ = b.Buffer.Write(p[:keep])
	return len(p), nil
}

// lineWriter hands on what is written to it line by line; one that is longer than lineBytesMax is left out.
type lineWriter struct {
	line func(string)
	rest []byte
	skip bool // the end of a line that is too long
}

const lineBytesMax = 64 << 10

func (w *lineWriter) Write(p []byte) (int, error) {
	for part := range bytes.Lines(p) {
		w.rest = append(w.rest, part...)
		if w.rest[len(w.rest)-1] == '\n' {
			if !w.skip {
				w.line(strings.TrimSuffix(string(w.rest), "\n"))
			}
			w.rest, w.skip = w.rest[:0], false
		} else if len(w.rest) > lineBytesMax {
			w.rest, w.skip = w.rest[:0], true
		}
	}
	return len(p), nil
}

// tidy makes one line of what virsh said.
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

// said tells whether an error of virsh holds one of the texts.
func said(err error, texts ...string) bool {
	var e *callError
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

// isGone: what the call was about does not exist. Of a domain that is looked up by its UUID, virsh says no more than that
// it failed to get it, once for each of several; when there is another reason, it says that too.
func isGone(err error) bool {
	if said(err, "Domain not found", "no domain with matching", "Storage volume not found", "no storage vol with matching") {
		return true
	}
	var e *callError
	return errors.As(err, &e) && e.gone
}

var noDomain = regexp.MustCompile(`^failed to get domain '[^']*'(; failed to get domain '[^']*')*$`)

// isThere: what the call was to make exists already.
func isThere(err error) bool { return said(err, "already exists", "exists already") }

// isStill: a domain is in the state that the call was to bring about.
func isStill(err error) bool {
	return said(err, "domain is not running", "domain is already running", "Domain is already active", "is already active as")
}

// isLost: whether the call had its effect is not known, or it cannot have had any because there was no connection.
func isLost(err error) bool {
	return errors.Is(err, errTimedOut) || errors.Is(err, errUnreached) || hungUp(err) || said(err, "failed to connect to the hypervisor", "End of file while reading data",
		"client socket is closed", "Connection reset", "Connection refused", "Cannot recv data", "Cannot write data",
		"Broken pipe", "internal client error", "connection closed", "Connection timed out", "No route to host",
		"Network is unreachable", "Disconnected from")
}

// hungUp: virsh was writing when its connection was closed, which ends it.
func hungUp(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGPIPE
}

// isBusy: somebody else works on the same thing; it may succeed a moment later.
func isBusy(err error) bool {
	return said(err, "asynchronous jobs running", "cannot acquire state change lock", "still being allocated",
		"still in use", "is being", "Resource busy", "Device or resource busy", "another operation")
}

const (
	attemptsMax   = 6
	attemptDelay  = 100 * time.Millisecond
	attemptBudget = 15 * time.Second // a call that hangs is not made again
)

// errAgain marks an error after which the same call is worth another attempt.
var errAgain = errors.New("try again")

// patiently makes act again while it fails in a way that may pass. After such a failure settled, when it is given, looks
// whether act had its effect nevertheless.
func patiently(ctx context.Context, act func(context.Context) error, settled func(context.Context) bool) error {
	began := time.Now()
	delay := attemptDelay
	for attempt := 1; ; attempt++ {
		err := act(ctx)
		if err == nil {
			return nil
		}
		again := isLost(err) || isBusy(err) || errors.Is(err, errAgain)
		if again && settled != nil && ctx.Err() == nil && settled(ctx) {
			return nil
		}
		if !again || attempt == attemptsMax || time.Since(began) > attemptBudget {
			return err
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return err
		}
		delay *= 2
	}
}
