package run_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/run"
)

func TestLeaseIsExclusive(t *testing.T) {
	runs := t.TempDir()
	first, err := run.AcquireLease(runs, "local", "run-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = run.AcquireLease(runs, "local", "run-2", nil)
	var locked *diag.Error
	if !errors.As(err, &locked) || locked.ExitCode() != diag.ExitLocked {
		t.Fatalf("a second lease: %v", err)
	}
	for _, part := range []string{`run "run-1"`, "process "} {
		if !strings.Contains(locked.Message, part) {
			t.Errorf("message %q does not name the holder: %s", locked.Message, part)
		}
	}
	other, err := run.AcquireLease(runs, "cluster", "run-3", nil)
	if err != nil {
		t.Fatalf("the lease of another target: %v", err)
	}
	if err := other.Release(); err != nil {
		t.Error(err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second, err := run.AcquireLease(runs, "local", "run-2", nil)
	if err != nil || second.Fence != first.Fence+1 {
		t.Fatalf("after release: %+v, %v; want fence %d", second, err, first.Fence+1)
	}
	if err := second.Release(); err != nil {
		t.Error(err)
	}
}

// However many ask at once, one at a time has the lease, and every lease has a number of its own.
func TestLeaseUnderContention(t *testing.T) {
	runs := t.TempDir()
	var holders, most, granted atomic.Int64
	var mu sync.Mutex
	fences := map[uint64]bool{}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				lease, err := run.AcquireLease(runs, "local", "r", nil)
				if err != nil {
					if diag.ExitCode(err) != diag.ExitLocked {
						t.Error(err)
						return
					}
					continue
				}
				most.Store(max(most.Load(), holders.Add(1)))
				mu.Lock()
				fences[lease.Fence] = true
				mu.Unlock()
				granted.Add(1)
				holders.Add(-1)
				if err := lease.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if most.Load() != 1 || granted.Load() == 0 || int64(len(fences)) != granted.Load() {
		t.Errorf("%d holders at once, %d leases, %d numbers", most.Load(), granted.Load(), len(fences))
	}
}

func TestLeaseWithHostileName(t *testing.T) {
	runs := t.TempDir()
	lease, err := run.AcquireLease(runs, "../../etc/passwd\x00"+strings.Repeat("x", 5000), "r", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	entries, _ := os.ReadDir(filepath.Join(runs, ".control"))
	if len(entries) != 1 || !strings.HasPrefix(entries[0].Name(), "lease-") {
		t.Errorf("files %v", entries)
	}
}

// A damaged lease file is no reason to count from 1 again: late commands of an old holder would be let through.
func TestDamagedLease(t *testing.T) {
	runs := t.TempDir()
	lease, err := run.AcquireLease(runs, "local", "r", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = lease.Release()
	path := filepath.Join(runs, ".control", "lease-local")
	if err := os.WriteFile(path, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run.AcquireLease(runs, "local", "r", nil); err == nil {
		t.Error("a damaged lease was taken")
	}
}

func TestLeaseFailpoints(t *testing.T) {
	for _, name := range []string{"lease.acquire", "lease.locked", "lease.fenced"} {
		runs := t.TempDir()
		if _, err := run.AcquireLease(runs, "local", "r", nth(name, 1)); !errors.Is(err, errInjected) {
			t.Errorf("%s: %v", name, err)
		}
		lease, err := run.AcquireLease(runs, "local", "r", nil)
		if err != nil {
			t.Errorf("after a failure at %s: %v", name, err)
			continue
		}
		_ = lease.Release()
	}
}

// The identity of a runs directory is made once, however many ask for it first.
func TestControllerIdentity(t *testing.T) {
	runs := t.TempDir()
	var mu sync.Mutex
	seen, nonces := map[string]bool{}, map[string]bool{}
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			tag, err := run.NewTag(runs, "r", nil)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			seen[tag.Controller], nonces[tag.Nonce] = true, true
		})
	}
	wait.Wait()
	if len(seen) != 1 || len(nonces) != 16 {
		t.Errorf("%d identities, %d nonces", len(seen), len(nonces))
	}
	entries, _ := os.ReadDir(filepath.Join(runs, ".control"))
	if len(entries) != 1 {
		t.Errorf("files %v", entries)
	}
}
