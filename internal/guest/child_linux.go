package guest

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	agentStopsWithin = 20 * time.Second
	// An agent that crashed is restarted, so that the controller can query what happened; after this many crashes it is
	// not.
	agentCrashesMax = 5
	agentPause      = time.Second
)

// keepAgent runs the agent until it exits by itself or ctx ends. It also reaps orphans, as a first process must.
func (m *machine) keepAgent(ctx context.Context, config string) outcome {
	for crashes := 1; ; crashes++ {
		status, err := m.runAgent(ctx, config)
		switch {
		case err != nil:
			return outcome{reason: fmt.Sprintf("start the agent: %v", err)}
		case ctx.Err() != nil:
			return outcome{reason: "the agent was stopped"}
		case !crashed(status):
			return outcome{reason: fmt.Sprintf("the agent ended with code %d", status.ExitStatus())}
		case crashes == agentCrashesMax:
			return outcome{reason: fmt.Sprintf("the agent crashed %d times", crashes)}
		}
		m.say("the agent crashed (%s): starting it again", describe(status))
		time.Sleep(agentPause)
	}
}

// crashed distinguishes a crash (a signal, or Go's own exit code for one) from an exit that the agent chose and explained.
func crashed(s unix.WaitStatus) bool { return s.Signaled() || s.ExitStatus() == 2 }

func describe(s unix.WaitStatus) string {
	if s.Signaled() {
		return "signal " + s.Signal().String()
	}
	return fmt.Sprintf("code %d", s.ExitStatus())
}

func (m *machine) runAgent(ctx context.Context, config string) (unix.WaitStatus, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	child, err := os.StartProcess(self, []string{"bragg-agent", config}, &os.ProcAttr{
		Dir: "/", Files: []*os.File{null, m.console, m.console}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, err
	}
	id := child.Pid
	_ = child.Release() // orphans and the agent are waited for together, below
	ended := make(chan unix.WaitStatus, 1)
	go func() { ended <- reapUntil(id) }()
	select {
	case status := <-ended:
		return status, nil
	case <-ctx.Done():
	}
	_ = unix.Kill(id, unix.SIGTERM)
	select {
	case status := <-ended:
		return status, nil
	case <-time.After(agentStopsWithin):
		m.say("the agent does not stop: killing it")
		_ = unix.Kill(id, unix.SIGKILL)
		return <-ended, nil
	}
}

// reapUntil reaps every process that ends, until id does.
func reapUntil(id int) unix.WaitStatus {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.ECHILD:
			return status // already reaped, which should not happen
		case err == nil && ended == id:
			return status
		}
	}
}
