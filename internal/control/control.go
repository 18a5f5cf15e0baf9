// Package control manages the folder .control of a runs directory: the controller's identity, the leases of targets, and the
// journals of what each run has changed outside. It changes only this folder, and undoes nothing.
//
//	NewTag       ──▶ identity of the directory, run, nonce: ownership tag of a run
//	AcquireLease ──▶ Lease, one run at a time ──AtTarget──▶ the target's own half
//	CreateJournal ─▶ Intend: synced ──▶ act ──▶ done; Undone; after a kill: Recover
package control

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
)

// controlName is the folder in the runs directory that holds the controller's identity, leases and journals. It is not a
// bundle and is never copied with one: journals hold the nonces that prove ownership.
const controlName = ".control"

func controlDir(runs string) string { return filepath.Join(runs, controlName) }

// The journal of a run and its folder for secrets are named after the run.
const (
	journalSuffix = ".journal"
	privateSuffix = ".private"
)

// makeControl creates the control directory, and refuses one that may be another user's, because its owner decides what clean
// deletes.
func makeControl(runs string) error {
	dir := controlDir(runs)
	if err := os.MkdirAll(runs, 0o755); err != nil {
		return fmt.Errorf("create the runs folder: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create control directory of %q: %w", runs, err)
	}
	return checkControl(runs)
}

// checkControl refuses a control directory that may be another user's, and one with an entry that Bragg does not create. A
// missing directory is fine.
func checkControl(runs string) error {
	dir := controlDir(runs)
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at control directory of %q: %w", runs, err)
	}
	hint := "it holds journals that decide what is deleted: look who made it, remove it, or choose another place with --runs DIR"
	refuse := func(what string) error {
		return &diag.Error{
			Code: "foreign-control", Exit: diag.ExitRefused, Message: fmt.Sprintf("%q %s", dir, what),
			Hint: hint,
		}
	}
	switch owner, known := ownerOf(info); {
	case info.Mode()&fs.ModeSymlink != 0:
		return refuse("is a symbolic link")
	case !info.IsDir():
		return refuse("is not a directory")
	case known && owner != os.Geteuid():
		hint = "it holds journals that decide what is deleted: run bragg as that user, or choose another place with --runs DIR"
		return refuse(fmt.Sprintf("belongs to another user (uid %d)", owner))
	case info.Mode().Perm()&0o022 != 0 && keepsModes(dir, info, os.Chmod):
		return refuse(fmt.Sprintf("may be written by others (mode %v)", info.Mode().Perm()))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look at control directory of %q: %w", runs, err)
	}
	for _, e := range entries {
		if !ownEntry(e) {
			hint = fmt.Sprintf("remove %q and leave the rest: the journals beside it tell bragg clean what to delete", e.Name())
			return refuse(fmt.Sprintf("contains %q, which is neither a regular file nor the private folder of a run", e.Name()))
		}
	}
	return nil
}

// CheckWriters refuses a runs directory in which other users may rename what is in it: they could put links in the place of runs while
// those are cleaned. With the sticky bit they cannot.
func CheckWriters(runs string) error {
	info, err := os.Stat(runs)
	if err != nil || info.Mode().Perm()&0o022 == 0 || info.Mode()&fs.ModeSticky != 0 || !keepsModes(runs, info, os.Chmod) {
		return nil // a missing directory has nothing to clean
	}
	return &diag.Error{
		Code: "others-write", Exit: diag.ExitRefused, Message: fmt.Sprintf("other users may replace what is in %q (mode %v)", runs, info.Mode().Perm()),
		Hint: "cleaning deletes there: " + textio.Shell("chmod", "go-w", runs) + ", or +t where several users share it",
	}
}

// ownEntry reports whether Bragg creates such an entry in the control directory. Pipes would block readers, and links lead
// elsewhere.
func ownEntry(e fs.DirEntry) bool {
	return e.Type().IsRegular() || e.IsDir() && strings.HasSuffix(e.Name(), privateSuffix)
}

// keepsModes reports whether the file system of a directory stores permissions: FAT, NTFS and shares show one mode for
// everything, which does not identify the creator of the directory. It removes the write permission and checks the result.
func keepsModes(dir string, was fs.FileInfo, chmod func(name string, mode fs.FileMode) error) bool {
	if err := chmod(dir, was.Mode().Perm()&^0o022); err != nil {
		return false
	}
	now, err := os.Lstat(dir)
	if err != nil || now.Mode().Perm()&0o022 != 0 {
		return err != nil
	}
	return chmod(dir, was.Mode().Perm()) == nil
}

// checkRunID refuses run ids that contain a path.
func checkRunID(run string) error {
	if run == "" || run != filepath.Base(run) || strings.HasPrefix(run, ".") {
		return &diag.Error{Code: "bad-run-id", Message: fmt.Sprintf("run id %q is not a file name", run), Exit: diag.ExitUsage}
	}
	return nil
}

func journalPath(runs, run string) string { return filepath.Join(controlDir(runs), run+journalSuffix) }
func privatePath(runs, run string) string { return filepath.Join(controlDir(runs), run+privateSuffix) }

// NewTag returns the ownership tag of a new run: the identity of the runs directory, which is created on first use, the run and
// 128 random bits.
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

func controllerID(runs string, fail Failpoint) (string, error) {
	dir := controlDir(runs)
	path := filepath.Join(dir, "controller")
	if err := makeControl(runs); err != nil {
		return "", err
	}
	if id, err := readControllerID(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	if err := makeControllerID(dir, path, fail); err != nil {
		return "", fmt.Errorf("write controller identity: %w", err)
	}
	return readControllerID(path)
}

// makeControllerID creates the file atomically. Link fails if another process was first; then its identity is used.
func makeControllerID(dir, path string, fail Failpoint) error {
	release, err := durable.LockDir(dir, unix.LOCK_SH)
	if err != nil {
		return err
	}
	defer release()
	temporary, err := writeTemporary(dir, randomHex()+"\n")
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	if err := fail.At("controller.written"); err != nil {
		return err
	}
	if err := os.Link(temporary, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fail.At("controller.linked")
}

func writeTemporary(dir, text string) (string, error) {
	f, err := os.CreateTemp(dir, "controller-*"+temporarySuffix)
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
		return "", &diag.Error{
			Code: "damaged-controller", Exit: diag.ExitData, Message: fmt.Sprintf("read controller identity %q: not 32 hex digits", path),
			Hint: "remove it: the next run makes a new one, and bragg clean does not need it",
		}
	}
	return id, nil
}

// ownerOf returns the user who owns a file.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
