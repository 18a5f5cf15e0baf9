package rehearsal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/result/resulttest"
	"github.com/braggdev/bragg/internal/testreq"
)

// soakVariable asks for every scenario; "make soak" sets it.
const soakVariable = "BRAGG_SOAK_REHEARSALS"

// hangGuard ends what should have ended long before.
const hangGuard = 20 * time.Minute

// rig is a vCenter of two hosts with BMCs, and the programs that users have.
type rig struct {
	*vcsim.Server
	bragg, file string
}

// programs are built once for all tests.
var programs = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "bragg-programs-*"); err != nil {
		return "", err
	}
	programsDir = dir
	for _, name := range []string{"bragg", "bragg-agent"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), "-trimpath", "-ldflags", "-s -w", "github.com/braggdev/bragg/cmd/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w: %s", name, err, out)
		}
	}
	return dir, nil
})

var programsDir string // "": not built

func newRig(t *testing.T, o vcsim.Options) *rig {
	t.Helper()
	testreq.Root(t)
	built, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o.Hosts, o.Program = 2, filepath.Join(built, "bragg-agent")
	s, err := vcsim.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.PowerOff(vcsim.Foreign); err != nil { // a user's VM that runs forbids to cut the power of its host
		t.Fatal(err)
	}
	if _, err := s.BMCs(vcsim.Password); err != nil {
		t.Fatal(err)
	}
	text, err := s.TargetFile(dir, "allow: {node_power: true, maintenance: true}\n")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Server: s, bragg: filepath.Join(built, "bragg"), file: filepath.Join(dir, "target.yml")}
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// command carries out bragg with these arguments.
func (r *rig) command(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	var out bytes.Buffer
	c := exec.CommandContext(ctx, r.bragg, args...)
	c.Stdout, c.Stderr = &out, &out
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(filepath.Dir(r.file), "state"))
	if err := c.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("bragg %s: %v", strings.Join(args, " "), err)
	}
	return c.ProcessState.ExitCode(), out.String()
}

// rehearsals are the scenarios that every platform carries out. One of them is short enough for every test.
var rehearsals = []struct {
	scenario, length string
	set              []string
	soak             bool
}{
	{scenario: "four_corners", length: "5s", set: []string{"vms_per_node=1"}},
	{scenario: "node_failure", length: "30s", set: []string{"scan_vms=1"}, soak: true},
	{scenario: "snapshot_impact", length: "20s", soak: true},
	{scenario: "clone_impact", length: "20s", set: []string{"desktops_per_node=2"}, soak: true},
	{scenario: "noisy_neighbor", length: "20s", soak: true},
}

func TestRehearsals(t *testing.T) {
	if testing.Short() {
		t.Skip("loads run for a minute")
	}
	r := newRig(t, vcsim.Options{})
	for _, c := range rehearsals {
		if c.soak && os.Getenv(soakVariable) == "" {
			continue
		}
		t.Run(c.scenario, func(t *testing.T) {
			began := time.Now()
			runs := filepath.Join(t.TempDir(), "runs")
			args := []string{"run", c.scenario, "--target", r.file, "--runs", runs, "--rehearse", c.length, "--rehearse-size", "16MiB", "--max-full", "99"}
			for _, s := range c.set {
				args = append(args, "--set", s)
			}
			code, out := r.command(t, args...)
			t.Logf("exit code %d after %s", code, time.Since(began).Round(time.Second))
			if code != 0 {
				t.Fatalf("%s", out)
			}
			r.check(t, runs)
			if _, said := r.command(t, "clean", "--runs", runs); !strings.Contains(said, "Nothing to clean") {
				t.Errorf("bragg clean found something: %s", said)
			}
			for name := range r.VMs() {
				if name != vcsim.Foreign && name != vcsim.Template {
					t.Errorf("vm %q is left", name)
				}
			}
		})
	}
}

// check wants operations in a sealed bundle, values of the vCenter's counters, and no password anywhere.
func (r *rig) check(t *testing.T, runs string) {
	t.Helper()
	resulttest.NoSecret(t, runs, vcsim.Password)
	bundle := resulttest.Only(t, runs)
	operations := resulttest.Operations(t, bundle)
	sampled := map[string]bool{}
	for one, err := range bundle.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		sampled[one.Name] = true
	}
	if len(sampled) == 0 {
		t.Error("no samples")
	}
	t.Logf("%d operations; %d metrics", operations, len(sampled))
}
