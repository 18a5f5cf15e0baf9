package run

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// controlName is the folder in the runs directory that holds the controller's identity, leases and journals. It is no
// bundle and is never copied with one: journals hold the nonces that prove ownership.
const controlName = ".control"

func controlDir(runs string) string { return filepath.Join(runs, controlName) }

// The journal of a run, and the folder for what holds secrets, are named after it.
const (
	journalSuffix = ".journal"
	privateSuffix = ".private"
)

// checkRunID keeps paths out of the names of files.
func checkRunID(run string) error {
	if run == "" || run != filepath.Base(run) || run == "." || run == ".." {
		return &diag.Error{Code: "bad-run-id", Message: fmt.Sprintf("run id %q is no file name", run), Exit: diag.ExitUsage}
	}
	return nil
}

func journalPath(runs, run string) string { return filepath.Join(controlDir(runs), run+journalSuffix) }
func privatePath(runs, run string) string { return filepath.Join(controlDir(runs), run+privateSuffix) }

// NewTag returns the ownership tag of a new run: the identity of the runs directory, made when first asked for, the run
// and 128 random bits.
func NewTag(runs, run string, failpoint func(string) error) (target.Tag, error) {
	controller, err := controllerID(runs, failpoint)
	if err != nil {
		return target.Tag{}, err
	}
	return target.Tag{Controller: controller, Run: run, Nonce: randomHex()}, nil
}

func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func controllerID(runs string, fail failpoints) (string, error) {
	dir := controlDir(runs)
	path := filepath.Join(dir, "controller")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create control directory of %q: %w", runs, err)
	}
	if id, err := readControllerID(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	if err := makeControllerID(dir, path, fail); err != nil {
		return "", fmt.Errorf("write controller identity: %w", err)
	}
	return readControllerID(path)
}

// makeControllerID lets the file appear whole or not at all. Link fails when another process was first; then its
// identity holds.
func makeControllerID(dir, path string, fail failpoints) error {
	release, err := lockControl(dir, unix.LOCK_SH)
	if err != nil {
		return err
	}
	defer release()
	temporary, err := writeTemporary(dir, randomHex()+"\n")
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	if err := fail.at("controller.written"); err != nil {
		return err
	}
	if err := os.Link(temporary, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fail.at("controller.linked")
}

func writeTemporary(dir, text string) (string, error) {
	f, err := os.CreateTemp(dir, "controller-*"+unbornSuffix)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func readControllerID(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(data))
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != 16 {
		return "", fmt.Errorf("read controller identity %q: not 32 hex digits", path)
	}
	return id, nil
}
