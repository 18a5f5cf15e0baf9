// Package virsh runs the program virsh: calls to the libvirt of one host, one after another. It handles connections,
// outputs and errors of virsh, but not VMs; the packages beside it define the meaning of calls.
//
//	Host.Query, Apply ──▶ Retry ──▶ Host.Run ──▶ tunnel (ssh, where the URI says so) ──▶ Runner ──▶ virsh
//
// A call may report an error although it took effect. Callers check the state and try again (errors.go).
package virsh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/textio"
)

// Limits of single calls. The first of them detects a host that is off.
const (
	QueryLimit   = 30 * time.Second
	SilentLimit  = 8 * time.Second // of a host that did not answer before
	ChangeLimit  = 2 * time.Minute
	CopyLimit    = 6 * time.Hour // a disk, over whatever storage there is
	MigrateLimit = time.Hour

	outputBytesMax  = 64 << 20
	printedBytesMax = 256 << 10 // of errors: a line for each domain of a call
	errorBytesMax   = 1000
)

// Call is one run of virsh.
type Call struct {
	URI string
	// Args are the command and its arguments, each value as "--option=value": whatever a value begins with, it is never
	// taken for an option.
	Args  []string
	Stdin []byte // read by the command as /dev/stdin
	Limit time.Duration
	// Line, if any, gets what the command prints line by line, as soon as it prints it. The command runs on, and ends
	// with this program in whatever way that ends.
	Line func(string)
}

// Name is the command of a call, for messages.
func (c Call) Name() string {
	if len(c.Args) == 0 {
		return ""
	}
	name, _, _ := strings.Cut(c.Args[0], " ")
	return name
}

// Runner runs one call and returns what it printed. Every contact with libvirt goes through one, which is also where
// tests let calls fail.
type Runner func(ctx context.Context, c Call) ([]byte, error)

// passedOn are the variables of the environment that virsh needs. No others are handed on: some of them are
// secrets of the target file.
var passedOn = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "KRB5CCNAME",
}

// Run is the Runner that runs the program.
func Run(ctx context.Context, c Call) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	cmd := exec.CommandContext(bounded, "virsh", append([]string{"--quiet", "--connect=" + c.URI}, c.Args...)...)
	cmd.Env = []string{"LC_ALL=C"} // messages are distinguished by their text
	for _, name := range passedOn {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stdin = bytes.NewReader(c.Stdin)
	out, printed := &textio.Head{MaxBytes: outputBytesMax}, &textio.Head{MaxBytes: printedBytesMax}
	cmd.Stdout, cmd.Stderr = out, printed
	// A session of its own: the terminal's interrupt is for the controller, which still has to clean up with virsh; and a
	// libvirt that wants a password has no terminal to ask on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.Line != nil {
		cmd.Stdout = &lineWriter{line: c.Line}
		// The signal comes with the end of the thread that started the process, which must not be one that the runtime ends.
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case err == nil && !out.Cut():
		return out.Bytes(), nil
	case err == nil:
		err = fmt.Errorf("it printed more than %d bytes", outputBytesMax)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case bounded.Err() != nil:
		err = ErrTimedOut
	}
	if errors.Is(err, ErrTimedOut) || ctx.Err() != nil {
		return nil, Failed(c, "", err)
	}
	return nil, Failed(c, printed.String(), err)
}

// lineWriter hands on what is written to it line by line; lines longer than lineBytesMax are left out.
type lineWriter struct {
	line func(string)
	rest []byte
	skip bool // until the end of a line that is too long
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
