package control_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario"
)

// TestPlantedControlIsRefused: journals decide what is deleted, so they are not taken from a place that another user prepared.
func TestPlantedControlIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(t *testing.T, path string) error
		want  string
	}{
		"link":            {func(t *testing.T, path string) error { return os.Symlink(t.TempDir(), path) }, "is a symbolic link"},
		"link to nowhere": {func(_ *testing.T, path string) error { return os.Symlink("/nowhere", path) }, "is a symbolic link"},
		"file":            {func(_ *testing.T, path string) error { return os.WriteFile(path, nil, 0o600) }, "is not a directory"},
		"open to others":  {func(_ *testing.T, path string) error { _ = os.Mkdir(path, 0o700); return os.Chmod(path, 0o777) }, "may be written by others"},
		"of another user": {func(_ *testing.T, path string) error { _ = os.Mkdir(path, 0o700); return os.Chown(path, 65534, 65534) }, "uid 65534"},
		"a pipe in it": {func(_ *testing.T, path string) error {
			return errors.Join(os.Mkdir(path, 0o700), unix.Mkfifo(filepath.Join(path, "run-1.journal"), 0o600))
		}, "neither a regular file"},
		"a link in it": {func(_ *testing.T, path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Symlink("/etc/hostname", filepath.Join(path, "run-1.journal")))
		}, "neither a regular file"},
		"a folder in it": {func(_ *testing.T, path string) error {
			return os.MkdirAll(filepath.Join(path, "run-1"), 0o700)
		}, "neither a regular file"},
		"a link as a private folder": {func(t *testing.T, path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Symlink(t.TempDir(), filepath.Join(path, "run-1.private")))
		}, "neither a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			runs := t.TempDir()
			if err := c.plant(t, filepath.Join(runs, ".control")); err != nil {
				t.Fatal(err)
			}
			_, lease := control.AcquireLease(runs, "local", "run-1", nil)
			_, tag := control.NewTag(runs, "run-1", nil)
			_, journals := control.Journals(runs)
			_, notes := control.LeaseNotes(runs)
			_, recover := control.Recover(runs)
			_, one := control.RecoverRun(runs, "run-1")
			for _, err := range []error{lease, tag, journals, notes, recover, one, control.RemoveTemporary(runs), control.RemoveJournal(runs, "run-1")} {
				if diag.ExitCode(err) != diag.ExitRefused || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// TestPrivateFolderStaysWithControl: a killed run leaves one, and clean and the runs beside it go on.
func TestPrivateFolderStaysWithControl(t *testing.T) {
	runs := t.TempDir()
	if err := os.MkdirAll(filepath.Join(runs, ".control", "run-1.private"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := control.NewTag(runs, "run-2", nil); err != nil {
		t.Error(err)
	}
	if _, err := control.Journals(runs); err != nil {
		t.Error(err)
	}
}

// What "bragg clean" prints says what was done, not what was left.
func TestThingsForReaders(t *testing.T) {
	call := &scenario.Call{Name: "vm_group.DisableHA"}
	for _, c := range []struct {
		thing      control.Thing
		left, done string
	}{
		{control.Thing{Kind: control.ThingVMs}, "VMs of the run exist", "removed the VMs of the run"},
		{control.Thing{Kind: control.ThingNodeOff, Node: "node-1"}, `node "node-1" is powered off`, `powered on node "node-1"`},
		{control.Thing{Kind: control.ThingStep, Call: call}, "step vm_group.DisableHA is not undone", "undid step vm_group.DisableHA"},
	} {
		if got := c.thing.String(); got != c.left {
			t.Errorf("left: %q, want %q", got, c.left)
		}
		if got := c.thing.Reverted(); got != c.done {
			t.Errorf("done: %q, want %q", got, c.done)
		}
	}
}

// TestCheckWriters: where other users may rename runs, cleaning could delete what they put there instead.
func TestCheckWriters(t *testing.T) {
	for mode, refused := range map[fs.FileMode]bool{0o755: false, 0o775: true, 0o777: true, 0o777 | fs.ModeSticky: false} {
		runs := t.TempDir()
		if err := os.Chmod(runs, mode); err != nil {
			t.Fatal(err)
		}
		err := control.CheckWriters(runs)
		if refused != (diag.ExitCode(err) == diag.ExitRefused) {
			t.Errorf("%v: %v", mode, err)
		}
	}
	if err := control.CheckWriters(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Error(err)
	}
}
