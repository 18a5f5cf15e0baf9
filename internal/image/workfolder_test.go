//go:build unix

package image

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
)

// A build replaces what a killed one left, and neither the folder of a running one nor one that it did not make.
func TestWorkFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.qcow2.work")
	refused := func(err error) bool {
		var e *diag.Error
		return errors.As(err, &e) && e.Exit == diag.ExitRefused
	}
	mine := filepath.Join(path, "mine.txt")
	if err := errors.Join(os.Mkdir(path, 0o755), os.WriteFile(mine, []byte("a"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := makeWork(path); !refused(err) {
		t.Errorf("a folder of the user: %v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	release, err := makeWork(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := makeWork(path); !refused(err) {
		t.Errorf("two builds at once: %v", err)
	}
	release()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after a build: %v", err)
	}
	// A killed build leaves the folder with its mark, and no lock.
	if err := errors.Join(os.Mkdir(path, 0o755), os.WriteFile(filepath.Join(path, workMark), nil, 0o600), os.WriteFile(mine, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	release, err = makeWork(path)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := os.Stat(mine); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a killed build left: %v", err)
	}
}
