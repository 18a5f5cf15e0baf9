package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
)

// killAgent kills the agent of a VM on the hosts and returns how many processes that were.
func (h *hosts) killAgent(vm string) (killed int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		cwd, _ := os.Readlink(dir + "/cwd")
		arguments, _ := os.ReadFile(dir + "/cmdline")
		if id, err := strconv.Atoi(filepath.Base(dir)); err == nil && strings.HasPrefix(cwd, h.pool) && strings.Contains(string(arguments), strconv.Quote(vm)) {
			_ = syscall.Kill(id, syscall.SIGKILL)
			killed++
		}
	}
	return killed
}

// TestKilledAgentOnHost: killing an agent under load on a host ends its load with the reason, long before the agent counts
// as silent. (A broken connection does not count as a dead agent; TestRunOnHosts covers that.)
func TestKilledAgentOnHost(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	runs := filepath.Join(t.TempDir(), "runs")
	killed := 0
	p, err := session.Prepare(t.Context(), session.Order{
		Source: scenario.Source{Path: filepath.Join("testdata", "hosts"), Trusted: true}, Runs: runs, Target: h.file,
		Plan: planner.Options{FullPercentMax: 100}, Program: program(runs),
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Run(t.Context(), session.RunOptions{Watcher: &breaker{cut: func() { killed = h.killAgent("db-0001") }}})
	if err != nil || out.Ended != result.EndedFailed || killed == 0 {
		t.Errorf("outcome %+v, %v; %d processes were killed", out, err, killed)
	}
	if said := fmt.Sprint(out); !strings.Contains(said, "db-0001") || !strings.Contains(said, "its process does not run on the host") {
		t.Errorf("the reason is not told: %s", said)
	}
	h.clean(t)
	b, err := result.Open(out.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var stopped []string
	for e, err := range b.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == interval.EventVMStopped {
			stopped = append(stopped, e.Subject)
		}
	}
	if len(stopped) != 1 || stopped[0] != "db-0001" {
		t.Errorf("stopped are %q", stopped)
	}
}
