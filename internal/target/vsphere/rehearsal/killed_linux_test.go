package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/mo"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
	"github.com/braggdev/bragg/internal/testreq"
)

// The environment of a controller that kills itself at a failpoint.
const (
	dieAt     = "BRAGG_TEST_DIE_AT"
	dieRuns   = "BRAGG_TEST_DIE_RUNS"
	dieTarget = "BRAGG_TEST_DIE_TARGET"
	dieAgents = "BRAGG_TEST_DIE_AGENTS"
)

func TestMain(m *testing.M) {
	if at := os.Getenv(dieAt); at != "" {
		if err := control(at); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

// control is the controller of a run, or of cleaning after one, that dies at a failpoint.
func control(at string) error {
	die := func(name string) error {
		if name == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
		return nil
	}
	runs := os.Getenv(dieRuns)
	program := session.Program{Version: "test", AgentDir: os.Getenv(dieAgents), Leases: runs}
	if strings.HasPrefix(at, recovering) {
		_, err := session.Clean(context.Background(), session.Cleaning{Runs: runs, Program: program, Failpoint: die})
		return err
	}
	p, err := session.Prepare(context.Background(), session.Order{
		Source: scenario.Source{Path: filepath.Join("testdata", "busy"), Trusted: true}, Runs: runs, Target: os.Getenv(dieTarget),
		Plan: planner.Options{FullPercentMax: 100}, Program: program,
	})
	if err != nil {
		return err
	}
	defer p.Close()
	out, err := p.Run(context.Background(), session.RunOptions{Failpoint: die})
	fmt.Fprintf(os.Stderr, "%+v\n", out) // for the test, which expected it to die
	return err
}

// recovering begins the names of the places of cleaning.
const recovering = "recover."

// places are all failpoints of a run and of cleaning.
func places() []string { return append(session.Failpoints(), executor.Failpoints()...) }

// A controller is killed at its failpoints, while it works on a vCenter with BMCs. bragg clean removes all that it left, and
// switches hosts on again.
func TestKilledAtFailpoints(t *testing.T) {
	programtest.SoakOnly(t, "waits for BMCs")
	r := newRig(t, vcsim.Options{})
	for _, name := range places() {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			runs := filepath.Join(t.TempDir(), "runs")
			if strings.HasPrefix(name, recovering) {
				r.die(t, "load.started", runs)
			}
			r.die(t, name, runs)
			left := r.remains(t)
			if code, said := r.Command(t, "clean", "--runs", runs); code != 0 {
				t.Errorf("bragg clean: exit code %d: %s", code, said)
			}
			if still := r.remains(t); len(still) > 0 {
				t.Errorf("the death left %q, and cleaning %q", left, still)
			}
			if _, said := r.Command(t, "clean", "--runs", runs); !strings.Contains(said, "Nothing to clean") {
				t.Errorf("a second bragg clean found something: %s", said)
			}
			if busy := testreq.ProcessesNaming(t, runs); len(busy) > 0 {
				t.Errorf("processes are left: %s", busy)
			}
			t.Logf("%s: the death left %q", time.Since(began).Round(time.Second), left)
		})
	}
}

// die runs a controller until it kills itself.
func (r *rig) die(t *testing.T, at, runs string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), dieAt+"="+at, dieRuns+"="+runs, dieTarget+"="+r.File, dieAgents+"="+filepath.Dir(r.Bragg))
	out, err := c.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the controller did not die: %v\n%s", err, out)
	}
	if strings.Contains(string(out), vcsim.Password) {
		t.Error("its output holds the password")
	}
}

// remains lists what is not as it was: VMs, overrides of HA and DRS, hosts that do not answer.
func (r *rig) remains(t *testing.T) (all []string) {
	t.Helper()
	for name := range r.VMs() {
		if name != vcsim.Foreign && name != vcsim.Template {
			all = append(all, "vm "+name)
		}
	}
	for _, h := range r.Hosts() {
		if state := r.HostState(h); state != "connected" {
			all = append(all, h.Name+" is "+state)
		}
	}
	var clusters []mo.ClusterComputeResource
	for _, one := range r.Model.Map().All("ClusterComputeResource") {
		var c mo.ClusterComputeResource
		if err := r.Client().RetrieveOne(t.Context(), one.Reference(), []string{"configuration"}, &c); err != nil {
			t.Fatal(err)
		}
		clusters = append(clusters, c)
	}
	for _, c := range clusters {
		for _, o := range c.Configuration.DasVmConfig {
			all = append(all, "override of HA for "+o.Key.Value)
		}
		for _, o := range c.Configuration.DrsVmConfig {
			all = append(all, "override of DRS for "+o.Key.Value)
		}
	}
	slices.Sort(all)
	return all
}
