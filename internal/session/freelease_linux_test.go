package session_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/session"
)

// A cleanup that only frees an old lease is not reported to a run as another user of the machine; the next run is.
func TestCleanSharesNoMachine(t *testing.T) {
	runs, scope := t.TempDir(), t.TempDir()
	going, err := lease.Share(t.Context(), scope, lease.NewHolder("run-1", 0))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = going.Unlock() }()
	control := filepath.Join(runs, ".control")
	if err := os.Mkdir(control, 0o700); err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(control, "lease-local.target")
	if err := os.WriteFile(note, []byte(`{"config":{"provider":"local"},"lease":"local"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Clean(t.Context(), session.Cleaning{Runs: runs, Program: program(scope), Say: func(about, text string) { t.Error(about, text) }}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(note); !os.IsNotExist(err) {
		t.Fatalf("the lease was not freed: %v", err)
	}
	next, err := lease.Share(t.Context(), scope, lease.NewHolder("run-2", 0))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.Unlock() }()
	select {
	case m := <-going.Meetings():
		if m.With.Run != "run-2" || m.Ended {
			t.Errorf("the run met %+v", m)
		}
	case <-time.After(time.Minute):
		t.Error("the run met no other run")
	}
}
