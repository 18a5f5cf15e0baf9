package step

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/run"
)

// programWaitDelay is how long a stopped program may take to close its output.
const programWaitDelay = 5 * time.Second

// lastBytes keeps the end of what is written to it.
type lastBytes struct {
	kept []byte
	cut  bool
}

func (b *lastBytes) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p...)
	if over := len(b.kept) - outputBytesMax; over > 0 {
		b.kept, b.cut = append(b.kept[:0], b.kept[over:]...), true
	}
	return len(p), nil
}

// runProgram runs a program of the scenario on this machine and logs the end of its output. When ctx ends, the program
// and everything that it started are killed.
func runProgram(ctx context.Context, env *run.Env, cmd *exec.Cmd) error {
	var output lastBytes
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = programWaitDelay
	err := cmd.Run()
	if len(output.kept) > 0 {
		env.Notes.Log(string(output.kept))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("run %q: %w", cmd.Args[0], err)
	}
	return nil
}
