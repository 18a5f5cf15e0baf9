package kubelab

import (
	"errors"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/testreq"
)

// When the keeper is killed its processes end with it, and the next cluster removes the rest.
func TestKilledKeeper(t *testing.T) {
	t.Parallel()
	c := start(t, Options{})
	if err := c.keeper.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.keeper.process.Wait() // it was killed
	if left := testreq.ProcessesNaming(t, c.Dir); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	if left, err := remains(c.Dir); err != nil || len(left) == 0 {
		t.Errorf("nothing was left: %v", err) // the folder at least
	}
	unlock, err := lock(machineLock)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sweep(), unlock()); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(removeTimeLimit); ; time.Sleep(10 * time.Millisecond) {
		left, err := remains(c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			break // the kernel removes the interface by itself
		}
		if time.Now().After(until) {
			t.Fatalf("%q is left", left)
		}
	}
}
