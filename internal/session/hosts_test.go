package session_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/hostvm"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/testreq"
)

// agentDir names in the environment the folder with the agent's program for hosts: a link to the test binary.
const agentDir = "BRAGG_TEST_AGENT_DIR"

// failpointsVariable sets at how many failpoints the program is killed; "make soak" sets it to all. seedVariable selects
// the same ones again.
const (
	failpointsVariable = "BRAGG_SOAK_FAILPOINTS"
	seedVariable       = "BRAGG_TEST_SEED"
)

// onHost is the test binary as the program on a host: the host's half, or an agent.
func onHost(args []string) int {
	if args[0] == hostvm.Verb {
		return hostvm.Command(context.Background(), args[1:], "test")
	}
	return agent.Command(context.Background(), args, agent.Program{
		Generators: session.Catalog().Generators.ByName(), Version: "test", Stderr: os.Stderr,
	})
}

// hosts are two servers of ssh with a folder for VMs.
type hosts struct {
	*testreq.SSH
	pool, file string
}

func newHosts(t *testing.T) *hosts {
	t.Helper()
	if testing.Short() {
		t.Skip("needs servers of ssh")
	}
	if err := hostAgent(); err != nil {
		t.Fatal(err)
	}
	h := newServers(t)
	h.file = h.TargetFile(t, h.pool)
	return h
}

// newServers starts the servers, without a target file.
func newServers(t *testing.T) *hosts {
	t.Helper()
	h := &hosts{SSH: testreq.SSHD(t, 2)}
	var err error
	if h.pool, err = os.MkdirTemp("", "bragg-pool"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(h.pool) })
	return h
}

// hostAgentDir is "" until hostAgent has made it.
var hostAgentDir string

// hostAgent makes the folder with the agent's program, once for all tests; TestMain removes it.
var hostAgent = sync.OnceValue(func() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if hostAgentDir, err = os.MkdirTemp("", "bragg-agent"); err != nil {
		return err
	}
	if err := os.Setenv(agentDir, hostAgentDir); err != nil {
		return err
	}
	// A copy and not a link: hosts get the file that the path leads to, and its name matters.
	if out, err := exec.Command("cp", self, filepath.Join(hostAgentDir, "bragg-agent")).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the test binary: %w: %s", err, out)
	}
	return nil
})

// clean checks that nothing of a run is left on the hosts.
func (h *hosts) clean(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(h.pool + "/*")
	if err != nil || len(left) > 0 {
		t.Errorf("left on hosts: %q, %v", left, err)
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if cwd, err := os.Readlink(dir + "/cwd"); err == nil && strings.HasPrefix(cwd, h.pool) {
			t.Errorf("process %s is left in %s", dir, cwd)
		}
	}
}

// breaker breaks connections when load has run for a while.
type breaker struct {
	cut func()

	mu   sync.Mutex
	seen int
	once sync.Once
}

func (*breaker) Begin(*plan.Plan, string) {}
func (*breaker) Event(interval.Event)     {}

func (b *breaker) Interval(interval.Interval) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// Two VMs, a second each: the prefill has its own, short ones.
	if b.seen++; b.seen >= 6 {
		b.once.Do(b.cut)
	}
}

// TestRunOnHosts runs a scenario on two hosts while their connections break. The load continues meanwhile, and each of its
// seconds arrives once.
func TestRunOnHosts(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	runs := filepath.Join(t.TempDir(), "runs")
	broken := 0
	w := &breaker{cut: func() { broken = h.Break(0) + h.Break(1) }}
	p, err := session.Prepare(t.Context(), session.Order{
		Source: scenario.Source{Path: filepath.Join("testdata", "hosts"), Trusted: true}, Runs: runs, Target: h.file,
		Plan: planner.Options{FullPercentMax: 100}, Program: program(runs),
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Run(t.Context(), session.RunOptions{Watcher: w})
	if err != nil || out.Ended != result.EndedCompleted || len(out.Problems) > 0 {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	if broken < 2 {
		t.Errorf("%d sessions were broken, want those of both hosts", broken)
	}
	h.clean(t)
	b, err := result.Open(out.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	next := map[string]int64{}
	seconds := map[string]time.Duration{}
	for iv, err := range b.Intervals() {
		if err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprintf("%s %d %v of %s", iv.Workload, iv.Instance, iv.Prefill, iv.VM)
		if iv.Sequence != next[key] {
			t.Errorf("%s: interval %d comes where %d should", key, iv.Sequence, next[key])
		}
		next[key] = iv.Sequence + 1
		seconds[key] += time.Duration(iv.LengthNanos)
	}
	for _, vm := range []string{"db-0001", "db-0002"} {
		// The scenario requests 6 s of load; 99.9 % of them must have arrived.
		if got := seconds["Writes 1 false of "+vm]; got < 5994*time.Millisecond {
			t.Errorf("%v of 6 s arrived of %s", got, vm)
		}
	}
}

// TestDeathOnHosts kills the controller at places of a run on hosts. Cleaning removes every agent and file from them.
func TestDeathOnHosts(t *testing.T) {
	t.Parallel()
	for _, name := range drawn(t, deadly(t, newHosts(t)), 4) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, runs := newHosts(t), filepath.Join(t.TempDir(), "runs")
			dieOf(t, filepath.Join("testdata", "hosts"), runs, name, dieTarget+"="+h.file)
			cleanAll(t, runs, nil)
			h.clean(t)
			machineIsFree(t, runs)
		})
	}
}

// deadly lists the places that a run on hosts passes.
func deadly(t *testing.T, h *hosts) []string {
	t.Helper()
	var mu sync.Mutex
	var names []string
	seen := map[string]bool{}
	runs := filepath.Join(t.TempDir(), "runs")
	out, err := runFolder(filepath.Join("testdata", "hosts"), runs, h.file, func(name string) error {
		mu.Lock()
		defer mu.Unlock()
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
		return nil
	})
	if err != nil || !unharmed(out) {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	h.clean(t)
	return names
}
