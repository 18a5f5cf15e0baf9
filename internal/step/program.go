package step

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/verb"
)

// programWaitDelay is how long a stopped program may take to close its output.
const programWaitDelay = 5 * time.Second

// runProgram runs a program of the scenario on this machine and logs the end of its output. When ctx ends, the program
// and everything that it started are killed.
func runProgram(ctx context.Context, env *verb.Env, cmd *exec.Cmd) error {
	output := textio.Tail{MaxBytes: outputBytesMax}
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = programWaitDelay
	err := cmd.Run()
	if text := output.String(); text != "" {
		env.Notes.Log(text)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("run %q: %w", cmd.Args[0], err)
	}
	return nil
}
