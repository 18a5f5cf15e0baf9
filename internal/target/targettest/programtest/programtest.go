// Package programtest has the programs that people have, bragg and those beside it, and a user's machine to carry them out on.
//
//	Built ──▶ folder of bragg, bragg-agent, bragg-lab ──▶ User.Command: exit code, output
//	                                                 └──▶ User.Rehearse: a shipped scenario, and nothing to clean after it
package programtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/testreq"
)

// HangGuard ends what should have ended long before.
const HangGuard = 20 * time.Minute

// built holds the programs of a test binary.
var built struct {
	mu  sync.Mutex
	dir string // "": none
}

// Built builds the named programs, each once for a test binary, and returns their folder. TestMain calls Remove.
func Built(t *testing.T, names ...string) (dir string) {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "bragg-programs-*")
		if err != nil {
			t.Fatal(err)
		}
		built.dir = dir
	}
	for _, name := range names {
		path := filepath.Join(built.dir, name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := testreq.Build(built.dir, "github.com/braggdev/bragg/cmd/"+name); err != nil {
			t.Fatal(err)
		}
	}
	return built.dir
}

// Remove deletes the programs that were built.
func Remove() {
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	built.dir = ""
}

// User is a user's machine.
type User struct {
	Bragg string // path of the program
	File  string // path of the target file
	State string // folder of the programs' state
}

// NewUser builds bragg and bragg-agent. The target file, target.yml in a folder of its own, is for the caller to write.
func NewUser(t *testing.T) *User {
	t.Helper()
	dir := t.TempDir()
	return &User{
		Bragg: filepath.Join(Built(t, "bragg", "bragg-agent"), "bragg"), File: filepath.Join(dir, "target.yml"), State: filepath.Join(dir, "state"),
	}
}

// Prepare returns bragg with these arguments, and its output. The caller calls cancel after it has ended.
func (u *User) Prepare(t *testing.T, args ...string) (c *exec.Cmd, output *bytes.Buffer, cancel context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), HangGuard)
	var out bytes.Buffer
	c = exec.CommandContext(ctx, u.Bragg, args...)
	c.Stdout, c.Stderr = &out, &out
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+u.State)
	return c, &out, cancel
}

// Command carries out bragg with these arguments.
func (u *User) Command(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	c, out, cancel := u.Prepare(t, args...)
	defer cancel()
	if err := c.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("bragg %s: %v", strings.Join(args, " "), err)
	}
	return c.ProcessState.ExitCode(), out.String()
}

// Rehearsal is a shipped scenario, shortened.
type Rehearsal struct {
	Scenario, Length string
	Set              []string // parameters: "vms_per_node=1"
	Soak             bool     // only in soaks
}

// SoakVariable enables rehearsals, and tests around them, that only the soak runs.
const SoakVariable = "BRAGG_SOAK_REHEARSALS"

// Soak reports whether they are enabled.
func Soak() bool { return os.Getenv(SoakVariable) != "" }

// SoakOnly skips a test where they are not.
func SoakOnly(t testing.TB, why string) {
	t.Helper()
	testreq.Soak(t, SoakVariable, why)
}

// Arguments are those of bragg for a rehearsal whose bundle is kept in the folder of runs.
func (u *User) Arguments(r Rehearsal, runs string) []string {
	args := []string{"run", r.Scenario, "--target", u.File, "--runs", runs, "--rehearse", r.Length, "--rehearse-size", "16MiB", "--max-full", "99"}
	for _, s := range r.Set {
		args = append(args, "--set", s)
	}
	return args
}

// Rehearse carries a rehearsal out and returns the folder of runs. It must complete, and leave nothing to clean. On a busy machine figures may
// miss the thresholds of a scenario. A rehearsal for soaks skips otherwise.
func (u *User) Rehearse(t *testing.T, r Rehearsal) (runs string) {
	t.Helper()
	if r.Soak {
		SoakOnly(t, "loads run for a minute")
	}
	runs = filepath.Join(t.TempDir(), "runs")
	began := time.Now()
	code, out := u.Command(t, u.Arguments(r, runs)...)
	t.Logf("exit code %d after %s", code, time.Since(began).Round(time.Second))
	if code != diag.ExitPass && code != diag.ExitFailed {
		t.Fatalf("%s", out)
	}
	if _, said := u.Command(t, "clean", "--runs", runs); !strings.Contains(said, "Nothing to clean") {
		t.Errorf("bragg clean found something: %s", said)
	}
	return runs
}
