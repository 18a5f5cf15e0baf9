// Package external runs shell commands of a scenario on the controller's machine.
//
//	step ──▶ Run: program, killed with the context ──▶ env.Notes
package external

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/verb"
)

// OutputBytesMax is how much of a program's output is kept: its end, which has the errors.
const OutputBytesMax = 4 << 10

// waitDelay is how long a stopped program may take to close its output.
const waitDelay = 5 * time.Second

// Run runs a program of the scenario on this machine and logs the end of its output. When ctx ends, the program
// and everything that it started are killed.
func Run(ctx context.Context, env *verb.Env, cmd *exec.Cmd) error {
	output := textio.Tail{MaxBytes: OutputBytesMax}
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = waitDelay
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
