package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/testreq"
)

// outageArguments run a scenario that leaves a node off until it is stopped, and whose cleanup takes a while.
func outageArguments(runs string, cleanup time.Duration) []string {
	return []string{"run", "testdata/scenario/outage", "--set", fmt.Sprintf("cleanup_secs=%d", cleanup/time.Second), "--max-full", "100", "--runs", runs}
}

// nodeIsOff matches the first event of the wait in the outage.
func nodeIsOff(e interval.Event) bool {
	return e.Kind == interval.EventStepStarted && e.Phase == "run" && e.Step == "test.Wait"
}

// TestSupervisors: what ends processes on behalf of others delivers one stop several times, to the process, its group or all descendants.
// None of them skips the cleanup: nodes are on again, and nothing is left.
func TestSupervisors(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]struct {
		wrapper []string // what starts bragg
		stop    func(t *testing.T, b *bragg)
	}{
		// timeout(1) handles a signal to itself as it handles the end of its time.
		"timeout":           {[]string{"timeout", "1h"}, signalOnce(syscall.SIGTERM)},
		"timeout interrupt": {[]string{"timeout", "--signal=INT", "1h"}, signalOnce(syscall.SIGINT)},
		"setsid":            {[]string{"setsid", "--wait"}, signalSession},
		"closed terminal":   {[]string{"script", "--quiet", "--return", "--command"}, closeTerminal},
		"service manager":   {nil, signalAll},
		"runner":            {nil, interruptThenTerminate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(s.wrapper) > 0 {
				testreq.Program(t, s.wrapper[0])
			}
			runs := filepath.Join(t.TempDir(), "runs")
			b := startBragg(t, wrap(s.wrapper), outageArguments(runs, 2*time.Second)...)
			dir := awaitEvent(t, b, runs, nodeIsOff)
			s.stop(t, b)
			_ = b.exitCode(t)
			awaitSeal(t, dir)
			if said := b.out.String(); strings.Contains(said, "cleanup skipped") {
				t.Errorf("one stop counts as two:\n%s", said)
			}
			checkNothingLeft(t, runs, b.out.String())
			// An agent that was terminated too may end first.
			if sum := summaryOf(t, dir); sum.Ended != result.EndedInterrupted && name != "service manager" || !isOnAgain(t, dir) {
				t.Errorf("ended %s: %s\n%s", sum.Ended, sum.Reason, b.out.String())
			}
		})
	}
}

// wrap puts another program in front.
func wrap(wrapper []string) func(*exec.Cmd) {
	return func(c *exec.Cmd) {
		if len(wrapper) == 0 {
			return
		}
		path, err := exec.LookPath(wrapper[0])
		if err != nil {
			path = wrapper[0]
		}
		arguments := c.Args
		if wrapper[0] == "script" { // takes a command line, and a file for its output
			arguments = []string{strings.Join(c.Args, " "), os.DevNull}
		}
		c.Path, c.Args = path, append(wrapper[:len(wrapper):len(wrapper)], arguments...)
	}
}

func signalOnce(s syscall.Signal) func(*testing.T, *bragg) {
	return func(t *testing.T, b *bragg) {
		if err := b.Process.Signal(s); err != nil {
			t.Error(err)
		}
	}
}

// signalSession terminates the process that setsid(1) made a leader, and its group.
func signalSession(t *testing.T, b *bragg) {
	all := withDescendants(t, b.Process.Pid)
	leader := all[slices.IndexFunc(all, func(pid int) bool { group, err := syscall.Getpgid(pid); return err == nil && group == pid })]
	for _, pid := range []int{leader, -leader} {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
}

// closeTerminal ends the program that holds the terminal. The kernel hangs up its processes, and a shell would do so once more.
func closeTerminal(t *testing.T, b *bragg) {
	all := withDescendants(t, b.Process.Pid)
	if err := b.Process.Kill(); err != nil {
		t.Error(err)
	}
	for _, pid := range all[1:] {
		_ = syscall.Kill(pid, syscall.SIGHUP)
	}
}

// signalAll terminates every process that the run started, as systemd does with those of a unit, and once more.
func signalAll(t *testing.T, b *bragg) {
	for range 2 {
		for _, pid := range withDescendants(t, b.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	}
}

// interruptThenTerminate is what runners of CI jobs do, who wait for some seconds in between.
func interruptThenTerminate(t *testing.T, b *bragg) {
	signalOnce(syscall.SIGINT)(t, b)
	time.Sleep(time.Second)
	signalOnce(syscall.SIGINT)(t, b)
	for range 5 {
		signalOnce(syscall.SIGTERM)(t, b)
		time.Sleep(100 * time.Millisecond)
	}
}

// withDescendants lists a process and all that it started.
func withDescendants(t *testing.T, pid int) []int {
	t.Helper()
	all := []int{pid}
	for _, p := range descendants(t, pid) {
		if id, err := strconv.Atoi(p.id); err == nil {
			all = append(all, id)
		}
	}
	return all
}

// awaitSeal waits for the end of a run whose process was started by another one, which may have ended before.
func awaitSeal(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(hangGuard); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		b, err := result.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		state, live := b.State(), b.Live()
		b.Close()
		if _, err := os.Stat(filepath.Join(dir, "report.html")); state == result.StateSealed && !live && err == nil {
			return
		}
	}
	t.Fatal("the run was never sealed")
}

// isOnAgain reports whether the run powered a node on after it powered it off.
func isOnAgain(t *testing.T, dir string) bool {
	t.Helper()
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	on := false
	for e, err := range b.Events() {
		if err != nil {
			t.Fatal(err)
		}
		on = on || e.Kind == interval.EventOperationEnded && e.Operation == "node-on" && e.Error == ""
	}
	return on
}
