package session_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
)

// A canceled run sends the remaining samples to the remote store and leaves no process or goroutine running.
func TestRemoteEndsWithARunThatBreaksOff(t *testing.T) {
	var taken atomic.Int64
	store := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken.Add(1) }))
	defer store.Close()
	runs := t.TempDir()
	p, err := session.Prepare(t.Context(), session.Order{
		Source: scenario.Source{Path: tiny, Trusted: true}, Runs: runs, Target: "local", RemoteWrite: metric.RemoteOptions{URL: store.URL},
		Plan: planner.Options{FullPercentMax: 100, AllowShell: true}, Program: program(runs),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	broken := errors.New("cut")
	_, err = p.Run(t.Context(), session.RunOptions{Failpoint: func(name string) error {
		if name == "session.ran" {
			return broken
		}
		return nil
	}})
	if !errors.Is(err, broken) {
		t.Fatalf("the run ended with %v", err)
	}
	all := make([]byte, 8<<20)
	if stacks := string(all[:runtime.Stack(all, true)]); strings.Contains(stacks, "metric.(*Remote)") {
		t.Errorf("it still writes to the store:\n%s", stacks)
	}
	if taken.Load() == 0 {
		t.Error("the store got nothing")
	}
	if _, err := session.Clean(t.Context(), session.Cleaning{Runs: runs, Program: program(runs)}); err != nil {
		t.Error(err)
	}
}
