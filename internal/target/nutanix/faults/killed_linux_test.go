package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/testreq"
)

// The environment of these tests: how many failpoints, and which.
const (
	failpointsVariable = "BRAGG_SOAK_FAILPOINTS" // of how many; "make soak" asks for all
	seedVariable       = "BRAGG_TEST_SEED"
	deathsInCI         = 2
)

// control is a controller that dies at a failpoint.
func control(encoded string) error {
	var o order
	if err := json.Unmarshal([]byte(encoded), &o); err != nil {
		return err
	}
	ctx := context.Background()
	die := func(name string) error {
		if name == o.Failpoint {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
		return nil
	}
	if strings.HasPrefix(o.Failpoint, "recover.") {
		_, err := session.Clean(ctx, session.Cleaning{Runs: o.Runs, Program: program(o.Runs), Failpoint: die})
		return err
	}
	p, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	out, err := p.Run(ctx, session.RunOptions{Failpoint: die})
	fmt.Fprintf(os.Stderr, "%+v\n", out) // for the parent, which expected this process to die
	return err
}

// die runs a controller until its failpoint.
func (r *rig) die(t *testing.T, o order) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(self, asController, string(encoded)).CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("it did not die at %s: %v\n%s", o.Failpoint, err, out)
	}
	r.checkSecrets(t, o.Runs, string(out))
}

// places are the failpoints of a run; without failpointsVariable those before BMCs switch hosts, which takes half a minute.
func places() []string {
	if os.Getenv(failpointsVariable) != "" {
		return append(session.Failpoints(), executor.Failpoints()...)
	}
	return []string{
		"lease.held", "session.journalled", "run.start", "vms.create", "vms.created", "vms.power-on", "vms.powered-on", "load.start", "load.started",
		"node.power-off",
	}
}

// A controller dies at failpoints chosen by a seed. Cleaning leaves nothing, and nothing of others changes.
func TestDeathAtFailpoints(t *testing.T) {
	if testing.Short() {
		t.Skip("runs of a scenario, on agents")
	}
	testreq.Root(t)
	t.Parallel()
	for i, name := range drawn(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, i%2 == 1)
			o := order{File: r.file, Runs: filepath.Join(r.dir, "runs"), Failpoint: name}
			if strings.HasPrefix(name, "recover.") {
				before := o
				before.Failpoint = "load.started"
				r.die(t, before)
			}
			r.die(t, o)
			cleaned, err := session.Clean(t.Context(), session.Cleaning{Runs: o.Runs, Program: program(o.Runs)})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cleaned {
				if c.Err != nil || c.Live {
					t.Errorf("clean %s: live %v, %v", c.Run, c.Live, c.Err)
				}
				r.checkSecrets(t, r.dir+"/runs", fmt.Sprintf("%+v", c))
			}
			r.checkLeft(t)
			if again, err := session.Clean(t.Context(), session.Cleaning{Runs: o.Runs, Program: program(o.Runs)}); err != nil || len(again) > 0 {
				t.Errorf("a second clean found %+v, %v", again, err)
			}
			all, err := result.List(o.Runs)
			for _, b := range all {
				if b.Err != nil || b.State == result.StateRunning {
					t.Errorf("bundle %s: state %s, %v", b.Dir, b.State, b.Err)
				}
			}
			if err != nil && !os.IsNotExist(err) {
				t.Error(err)
			}
		})
	}
}

// drawn returns some failpoints, or as many as failpointsVariable says.
func drawn(t *testing.T) []string {
	t.Helper()
	count, seed, all := deathsInCI, uint64(time.Now().UnixNano()), places()
	var err error
	if text := os.Getenv(failpointsVariable); text != "" {
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv(seedVariable); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	all = all[:min(count, len(all))]
	t.Logf("%s=%d chooses %q", seedVariable, seed, all)
	return all
}
