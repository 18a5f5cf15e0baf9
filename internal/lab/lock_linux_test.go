package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestWaitForALockEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "lock")
	unlock, err := lockFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	waited := make(chan error)
	go func() {
		_, err := lockFile(ctx, path)
		waited <- err
	}()
	stop(reason)
	if err := <-waited; !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	if err := errors.Join(unlock(), unlock()); err != nil {
		t.Error(err)
	}
	again, err := lockFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
}

// A part of a lab kills all processes and mounts over system folders: outside of a namespace it must do nothing.
func TestPartsOfALabAreFirstProcesses(t *testing.T) {
	dir := t.TempDir()
	for _, role := range [][]string{{roleKeeper, dir}, {roleHost, dir, "host-1"}} {
		if code := Main(role); code != 1 {
			t.Errorf("%q: exit code %d", role, code)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
