package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
)

func TestLeaseIsExclusive(t *testing.T) {
	runs := t.TempDir()
	first, err := control.AcquireLease(runs, "local", "run-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = control.AcquireLease(runs, "local", "run-2", nil)
	var locked *diag.Error
	if !errors.As(err, &locked) || locked.ExitCode() != diag.ExitLocked {
		t.Fatalf("a second lease: %v", err)
	}
	for _, part := range []string{`run "run-1"`, "process "} {
		if !strings.Contains(locked.Message, part) {
			t.Errorf("message %q does not name the holder: %s", locked.Message, part)
		}
	}
	other, err := control.AcquireLease(runs, "cluster", "run-3", nil)
	if err != nil {
		t.Fatalf("the lease of another target: %v", err)
	}
	if err := other.Release(); err != nil {
		t.Error(err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second, err := control.AcquireLease(runs, "local", "run-2", nil)
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
				lease, err := control.AcquireLease(runs, "local", "r", nil)
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
	lease, err := control.AcquireLease(runs, "../../etc/passwd\x00"+strings.Repeat("x", 5000), "r", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	entries, _ := os.ReadDir(filepath.Join(runs, ".control"))
	if len(entries) != 1 || !strings.HasPrefix(entries[0].Name(), "lease-") {
		t.Errorf("files %v", entries)
	}
}

// A damaged lease file must not restart the count from 1: late commands of an old holder would be accepted.
func TestDamagedLease(t *testing.T) {
	runs := t.TempDir()
	lease, err := control.AcquireLease(runs, "local", "r", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = lease.Release()
	path := filepath.Join(runs, ".control", "lease-local")
	if err := os.WriteFile(path, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := control.AcquireLease(runs, "local", "r", nil); err == nil {
		t.Error("a damaged lease was taken")
	}
}

func TestLeaseFailpoints(t *testing.T) {
	for _, name := range []string{"lease.acquire", "lease.locked", "lease.fenced"} {
		runs := t.TempDir()
		injected := errors.New("injected failure")
		fail := func(at string) error {
			if at == name {
				return injected
			}
			return nil
		}
		if _, err := control.AcquireLease(runs, "local", "r", fail); !errors.Is(err, injected) {
			t.Errorf("%s: %v", name, err)
		}
		lease, err := control.AcquireLease(runs, "local", "r", nil)
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
			tag, err := control.NewTag(runs, "r", nil)
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

// shared is a target that two controllers open, with a lock of this machine.
type shared struct {
	target.Target
	scope string
}

func (s shared) Lock(ctx context.Context, h lease.Holder) (target.Lock, error) {
	held, err := lease.Hold(ctx, s.scope, h)
	if err != nil {
		return nil, err
	}
	return held, nil
}

// Controllers that share no folder are kept apart at the target, and what one that dies leaves of that is noted.
func TestLeaseAtTarget(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	at := shared{scope: one}
	first, err := control.AcquireLease(one, "local", "run-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	before := first.Fence
	if err := first.AtTarget(t.Context(), at, []byte(`{"how":1}`)); err != nil || first.Fence <= before {
		t.Fatalf("fence %d after %d, %v", first.Fence, before, err)
	}
	notes, err := control.LeaseNotes(one)
	if err != nil || len(notes) != 1 || string(notes[0].How) != `{"how":1}` {
		t.Errorf("notes %+v, %v", notes, err)
	}
	second, err := control.AcquireLease(two, "local", "run-2", nil)
	if err != nil {
		t.Fatal(err)
	}
	err = second.AtTarget(t.Context(), at, nil)
	if diag.ExitCode(err) != diag.ExitLocked || !strings.Contains(err.Error(), `"run-1"`) {
		t.Errorf("another folder: %v", err)
	}
	if notes, err := control.LeaseNotes(two); err != nil || len(notes) > 0 {
		t.Errorf("a note of what another has: %+v, %v", notes, err)
	}
	// A controller that died before the machine was restarted has left a note, and perhaps a lease: that one is tried again.
	left := filepath.Join(two, ".control", "lease-local.target")
	if err := os.WriteFile(left, []byte(`{"how":0}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := second.AtTarget(t.Context(), at, []byte(`{"how":2}`)); diag.ExitCode(err) != diag.ExitLocked {
		t.Errorf("another folder: %v", err)
	}
	if notes, err := control.LeaseNotes(two); err != nil || len(notes) != 1 {
		t.Errorf("the note of one that died: %+v, %v", notes, err)
	}
	if err := errors.Join(second.Release(), os.Remove(left), first.Release()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{one, two, t.TempDir()} {
		if notes, err := control.LeaseNotes(dir); err != nil || len(notes) > 0 {
			t.Errorf("left %+v, %v", notes, err)
		}
	}
	again, err := control.AcquireLease(one, "local", "run-3", nil)
	if err != nil || again.Fence <= first.Fence {
		t.Fatalf("fence %d after %d, %v", again.Fence, first.Fence, err)
	}
	_ = again.Release()
}
