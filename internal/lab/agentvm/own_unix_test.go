//go:build unix

package agentvm

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/durable"
)

// The folder of an emulator that was killed is removed by the next one; those of emulators that run, and of others, stay.
func TestOwnFolder(t *testing.T) {
	parent := t.TempDir()
	names := func() (list []string) {
		entries, err := os.ReadDir(parent)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return list
	}
	for name, marked := range map[string]bool{"bragg-lab-vms-killed": true, "bragg-lab-vms-runs": true, "bragg-lab-vms-foreign": false, "other": true} {
		dir := filepath.Join(parent, name)
		if err := os.MkdirAll(filepath.Join(dir, "disks"), 0o700); err != nil {
			t.Fatal(err)
		}
		if marked {
			if err := os.WriteFile(filepath.Join(dir, ownMark), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink(filepath.Join(parent, "other"), filepath.Join(parent, "bragg-lab-vms-link")); err != nil {
		t.Fatal(err)
	}
	unlock, err := durable.LockDir(filepath.Join(parent, "bragg-lab-vms-runs"), unix.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	first, release, err := OwnFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	second, releaseSecond, err := OwnFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	stay := []string{"bragg-lab-vms-foreign", "bragg-lab-vms-link", "bragg-lab-vms-runs", "other"}
	want := append(slices.Clone(stay), filepath.Base(first), filepath.Base(second))
	slices.Sort(want)
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
	release()
	releaseSecond()
	unlock()
	if got := names(); !slices.Equal(got, stay) {
		t.Errorf("there are %q, want %q", got, stay)
	}
}
