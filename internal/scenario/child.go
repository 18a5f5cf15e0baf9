package scenario

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
)

// ChildVerb is the hidden command with which a program starts itself to read a scenario. The program's main, and TestMain of a
// package whose tests load scenarios that are not Trusted, calls ChildMain for it before anything else:
//
//	if scenario.IsChild() {
//		os.Exit(scenario.ChildMain(os.Stdin, os.Stdout))
//	}
const ChildVerb = "__render"

// Limits of a child. CPU time is bounded, not wall time, so that a busy machine does not cause refusals; wall time is only a
// guard against a child that hangs.
const (
	childProcessorMax = 1800 * time.Millisecond // start and exit included, within 2 s
	childClockMax     = 20 * time.Second
	childMemoryMax    = 256 << 20
	childHeapGoal     = 160 << 20
	childStackMax     = 64 << 20
	childAnswerMax    = 64 << 20
	childPoll         = 4 * time.Millisecond
)

// thisProgram also finds a program whose file was replaced or removed since it started.
const thisProgram = "/proc/self/exe"

// childGreeting precedes the answer, so that a program without the command is not taken for a child.
const childGreeting = "bragg render 1\n"

// IsChild reports whether this process was started to read a scenario.
func IsChild() bool { return len(os.Args) > 1 && os.Args[len(os.Args)-1] == ChildVerb }

// ChildMain reads one request, answers it and returns the exit code of the process.
func ChildMain(stdin io.Reader, stdout io.Writer) int {
	runtime.GOMAXPROCS(1) // one core is enough, and memory grows more slowly
	debug.SetMemoryLimit(childHeapGoal)
	debug.SetMaxStack(childStackMax)
	// The parent watches; the kernel ends a child whose parent was killed.
	limit := uint64(2 * childProcessorMax / time.Second)
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: limit, Max: limit})
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	var req request
	if err := gob.NewDecoder(io.LimitReader(stdin, childAnswerMax)).Decode(&req); err != nil {
		return diag.ExitInternal
	}
	if _, err := io.WriteString(stdout, childGreeting); err != nil {
		return diag.ExitInternal
	}
	if err := gob.NewEncoder(stdout).Encode(compose(req)); err != nil {
		return diag.ExitInternal
	}
	return diag.ExitPass
}

// Usage is the total resource use of a child.
type Usage struct {
	Memory    int64 // bytes, peak
	Processor time.Duration
}

// observeChild receives the usage of each child; tests replace it.
var observeChild = func(Usage) {}

// errLimit marks a child that exceeded a limit.
type errLimit struct{ what string }

func (e errLimit) Error() string { return e.what }

// composeInChild runs compose in a child process. A limit that the child exceeds becomes a diagnostic.
func composeInChild(ctx context.Context, req request) (response, error) {
	resp, err := runChild(ctx, req)
	var limit errLimit
	switch {
	case err == nil:
		return resp, nil
	case ctx.Err() != nil:
		return response{}, fmt.Errorf("read scenario %q: %w", req.File, ctx.Err())
	case errors.As(err, &limit):
		list := diag.List{}
		list.Add(diag.Diagnostic{Code: "too-costly", Pos: diag.Position{File: req.File},
			Message: "reading this scenario " + limit.what, Hint: "make its loops and texts smaller"})
		return response{}, list.Err()
	}
	return response{}, &diag.Error{Code: "render-child", Message: fmt.Sprintf("read scenario %q", req.File), Err: err}
}

func runChild(ctx context.Context, req request) (response, error) {
	var resp response
	args := []string{ChildVerb}
	if strings.HasSuffix(os.Args[0], ".test") {
		args = []string{"-test.run=^$", ChildVerb} // a test binary without the lines above must not run its tests
	}
	var input bytes.Buffer
	if err := gob.NewEncoder(&input).Encode(req); err != nil {
		return resp, fmt.Errorf("encode request: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, childClockMax, errLimit{fmt.Sprintf("takes more than %v", childClockMax)})
	defer cancel()
	cmd := exec.CommandContext(ctx, thisProgram, args...)
	cmd.Env = []string{} // scenarios have no access to it, and neither has the process that reads them
	cmd.Stdin = &input
	output := &textio.Head{MaxBytes: childAnswerMax}
	cmd.Stdout = output
	if err := cmd.Start(); err != nil {
		return resp, fmt.Errorf("start a child: %w", err)
	}
	ended := make(chan struct{})
	watched := make(chan error, 1)
	go func() { watched <- watchChild(cmd.Process, ended) }()
	waitErr := cmd.Wait()
	close(ended)
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		observeChild(Usage{Memory: r.Maxrss << 10, Processor: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()})
	}
	if err := <-watched; err != nil {
		return resp, err
	}
	if cause := context.Cause(ctx); cause != nil && waitErr != nil {
		return resp, cause
	}
	if waitErr != nil {
		return resp, crash(waitErr)
	}
	if output.Cut() {
		return resp, fmt.Errorf("answer of a child exceeds %d MiB", childAnswerMax>>20)
	}
	answer, ok := bytes.CutPrefix(output.Bytes(), []byte(childGreeting))
	if !ok {
		return resp, fmt.Errorf("this program does not answer to %s", ChildVerb)
	}
	if err := gob.NewDecoder(bytes.NewReader(answer)).Decode(&resp); err != nil {
		return resp, fmt.Errorf("decode answer: %w", err)
	}
	return resp, nil
}

// crash returns the reason why a child ended without an answer. Go exits with 2 when the stack or the memory is used up.
func crash(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if exit.ExitCode() == 2 || (ok && status.Signaled() && status.Signal() != syscall.SIGTERM) {
		return errLimit{"takes more than it may"}
	}
	return err
}

// watchChild kills a child that exceeds a limit and returns which one. It returns when the child has ended.
func watchChild(p *os.Process, ended <-chan struct{}) error {
	tick := time.NewTicker(childPoll)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return nil
		case <-tick.C:
		}
		memory, processor, err := usage(p.Pid)
		if err != nil {
			continue // it is ending
		}
		if memory > childMemoryMax {
			p.Kill()
			return errLimit{fmt.Sprintf("takes more than %d MiB of memory", childMemoryMax>>20)}
		}
		if processor > childProcessorMax {
			p.Kill()
			return errLimit{fmt.Sprintf("takes more than %v", childProcessorMax)}
		}
	}
}
