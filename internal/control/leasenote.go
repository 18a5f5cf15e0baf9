package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/durable"
)

// noteSuffix is appended to the name of a lease file for its note.
const noteSuffix = ".target"

// LeaseNote describes how to reach a target whose half of a lease was taken. A controller may die holding it before the journal
// exists, or after it was removed: cleaning then finds it by the note.
type LeaseNote struct {
	file string // name of the note, in the control directory
	How  []byte // argument of AtTarget
}

// LeaseNotes returns the notes of a runs directory, also of active runs.
func LeaseNotes(runs string) ([]LeaseNote, error) {
	if err := checkControl(runs); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(controlDir(runs))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	var notes []LeaseNote
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), leasePrefix) || !strings.HasSuffix(e.Name(), noteSuffix) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(controlDir(runs), e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // its run has ended
		}
		if err != nil {
			return notes, fmt.Errorf("read a note of a lease: %w", err)
		}
		notes = append(notes, LeaseNote{e.Name(), text})
	}
	return notes, nil
}

// note atomically writes how to reach the target.
func (l *Lease) note(how []byte) error {
	dir := filepath.Dir(l.file.Name())
	release, err := durable.LockDir(dir, unix.LOCK_SH)
	if err != nil {
		return err
	}
	defer release()
	temporary, err := writeTemporary(dir, string(how))
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, l.file.Name()+noteSuffix); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}

func (l *Lease) forgetNote() error {
	if err := os.Remove(l.file.Name() + noteSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
