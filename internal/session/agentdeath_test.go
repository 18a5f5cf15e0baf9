package session_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session"
)

const (
	agentPlace = "agent." // begins the names of places in agents
	// notePassed in the environment of an agent is a file to which it appends the names of the places that it passes.
	notePassed = "BRAGG_TEST_NOTE_PASSED"
)

// agentFailpoint returns what an agent does at its failpoints, according to the environment variable of the program that
// started it.
func agentFailpoint() func(string) {
	if file := os.Getenv(notePassed); file != "" {
		var mu sync.Mutex
		seen := map[string]bool{}
		return func(name string) {
			mu.Lock()
			defer mu.Unlock()
			if seen[name] {
				return
			}
			seen[name] = true
			f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
			if err == nil {
				_, _ = f.WriteString(name + "\n")
				_ = f.Close()
			}
		}
	}
	at := os.Getenv(dieAt)
	if !strings.HasPrefix(at, agentPlace) {
		return nil
	}
	return func(name string) {
		if name != at {
			return
		}
		// The first of all agents that comes here.
		f, err := os.OpenFile(diedNote(os.Getenv(dieRuns)), os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return
		}
		_ = f.Close()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}

// diedNote is a file that is there once an agent has died.
func diedNote(runs string) string { return runs + ".died" }

// lasting are places that agents pass only under a load that lasts.
var lasting = []string{"agent.batch", "agent.acknowledge", "agent.log", "agent.metrics"}

// folderFor is the scenario in which agents pass a place.
func folderFor(place string) string {
	if slices.Contains(lasting, place) {
		return filepath.Join("testdata", "agents")
	}
	return tiny
}

// child carries a scenario out in a process of its own.
func child(t *testing.T, folder, runs string, environment ...string) (said string, ended error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	c := exec.Command(self)
	c.Env = append(append(os.Environ(), dieRuns+"="+runs, dieScenario+"="+folder), environment...)
	text, err := c.CombinedOutput()
	return string(text), err
}

// agentDies kills an agent at a failpoint. The run continues without it, or fails; either way it undoes its changes and
// seals by itself.
func agentDies(t *testing.T, runs, at string) {
	t.Helper()
	said, err := child(t, folderFor(at), runs, dieAt+"="+at)
	if errors.As(err, new(*exec.ExitError)) || err != nil {
		t.Fatalf("the run did not end in order: %v\n%s", err, said)
	}
	if _, err := os.Stat(diedNote(runs)); err != nil {
		t.Fatalf("no agent died at %s: %v\n%s", at, err, said)
	}
	if left, err := session.Unfinished(runs); err != nil || len(left) > 0 {
		t.Errorf("left to be cleaned: %q, %v", left, err)
	}
	all, err := result.List(runs)
	if err != nil || len(all) != 1 || all[0].State != result.StateSealed {
		t.Errorf("bundles %+v, %v", all, err)
	}
}

// passedByAgents returns the places that the agents of a run pass.
func passedByAgents(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "passed")
	var both sync.WaitGroup
	for i, folder := range []string{tiny, folderFor(lasting[0])} {
		both.Go(func() {
			if said, err := child(t, folder, filepath.Join(dir, fmt.Sprint("runs", i)), dieAt+"="+agentPlace, notePassed+"="+file); err != nil {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
	both.Wait()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(text))
	slices.Sort(names)
	return slices.Compact(names)
}
