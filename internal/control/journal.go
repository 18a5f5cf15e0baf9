package control

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/plan"
)

// Files is the part of a file system that a journal needs. Tests make it fail.
type Files interface {
	// Create makes a new file for writing; it must not exist.
	Create(name string) (File, error)
	// Append opens a file for writing at its end, after cutting it to size bytes.
	Append(name string, size int64) (File, error)
	Rename(from, to string) error
	SyncDir(name string) error
	Remove(name string) error
}

// File is one open file of Files.
type File interface {
	io.WriteCloser
	Sync() error
}

// ErrJournalBroken means that an earlier write to the journal failed: no further outside changes are allowed.
var ErrJournalBroken = errors.New("journal is broken")

// Journal is the append-only record of what a run changes outside. Intents are synced before they are carried out. After the
// first failure it writes no more records, because a later success would hide the gap. Its methods may be called from several
// goroutines.
type Journal struct {
	files Files
	fail  Failpoint
	path  string

	mu     sync.Mutex
	file   File
	seq    uint64
	broken error
	open   map[string]Thing // by key: changed and not yet undone
	order  []string         // keys of open in the order of their first intent
	header Header
}

// CreateJournal creates the journal of a run in the runs directory. The file appears atomically, with its header.
func CreateJournal(runs string, header Header, files Files, failpoint func(string) error) (*Journal, error) {
	if files == nil {
		files = diskFiles{}
	}
	dir := controlDir(runs)
	if err := makeControl(runs); err != nil {
		return nil, fmt.Errorf("create journal of run %q: %w", header.Run, err)
	}
	if err := checkRunID(header.Run); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(journalPath(runs, header.Run)); !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("create journal of run %q: there is one already", header.Run)
	}
	header.Format = journalFormat
	j := &Journal{files: files, fail: failpoint, path: journalPath(runs, header.Run), open: map[string]Thing{}, header: header}
	if err := j.create(dir); err != nil {
		return nil, fmt.Errorf("create journal of run %q: %w", header.Run, err)
	}
	return j, nil
}

func (j *Journal) create(dir string) error {
	if err := j.fail.At("journal.create"); err != nil {
		return err
	}
	release, err := durable.LockDir(dir, unix.LOCK_SH)
	if err != nil {
		return err
	}
	defer release()
	temporary := j.path + temporarySuffix
	file, err := j.files.Create(temporary)
	if err != nil {
		return err
	}
	j.file = file
	_, err = j.append(record{Kind: recordHeader, Header: &j.header}, true)
	if err == nil {
		err = j.fail.At("journal.rename")
	}
	if err == nil {
		err = j.files.Rename(temporary, j.path)
	}
	if err == nil {
		err = j.files.SyncDir(dir)
	}
	if err != nil {
		_ = file.Close()
		_ = j.files.Remove(temporary)
		_ = j.files.Remove(j.path)
		return err
	}
	return nil
}

// Private is the folder for secrets of the run.
func (j *Journal) Private() string { return strings.TrimSuffix(j.path, journalSuffix) + privateSuffix }

// Path returns the file's name.
func (j *Journal) Path() string { return j.path }

// Header returns the first record.
func (j *Journal) Header() Header { return j.header }

// append writes one record and, if durable, syncs it, so that it survives a kill before the next action.
func (j *Journal) append(r record, durable bool) (uint64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return 0, j.broken
	}
	r.Seq, r.At = j.seq+1, time.Now().UTC()
	line, err := encodeRecord(r)
	if err != nil {
		return 0, err
	}
	if _, err = j.file.Write(line); err == nil && durable {
		err = j.file.Sync()
	}
	if err != nil {
		j.broken = fmt.Errorf("%w: write record %d of %q: %w", ErrJournalBroken, r.Seq, filepath.Base(j.path), err)
		return 0, j.broken
	}
	j.seq = r.Seq
	j.note(r)
	return r.Seq, nil
}

// note updates the table of open things.
func (j *Journal) note(r record) {
	if r.Thing == nil {
		return
	}
	key := r.Thing.key()
	switch r.Kind {
	case recordIntent:
		if _, known := j.open[key]; !known {
			j.order = append(j.order, key)
		}
		j.open[key] = *r.Thing
	case recordUndone:
		delete(j.open, key)
	}
}

// Intend records, durably, that thing is about to change, then calls act, then records that it was done. act is not called if the
// intent could not be made durable.
func (j *Journal) Intend(thing Thing, act func() error) error {
	if err := j.fail.At("journal.intent"); err != nil {
		return err
	}
	seq, err := j.append(record{Kind: recordIntent, Thing: &thing}, true)
	if err != nil {
		return err
	}
	if err := j.fail.At("journal.intended"); err != nil {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	// A lost "done" is harmless: undo is idempotent and starts from intents.
	_, err = j.append(record{Kind: recordDone, Ref: seq}, false)
	return err
}

// Undone records that thing is as it was before the run. If the record cannot be written, a later clean-up undoes the thing
// again, which is harmless.
func (j *Journal) Undone(thing Thing) error {
	j.mu.Lock()
	delete(j.open, thing.key())
	j.mu.Unlock()
	_, err := j.append(record{Kind: recordUndone, Thing: &thing}, true)
	return err
}

// Left returns the outside changes that are not yet undone, in the order of first intents.
func (j *Journal) Left() []Thing {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []Thing
	for _, key := range j.order {
		if t, ok := j.open[key]; ok {
			out = append(out, t)
		}
	}
	return out
}

// Begin records that a phase began.
func (j *Journal) Begin(p plan.Phase) error {
	_, err := j.append(record{Kind: recordPhase, Text: string(p)}, false)
	return err
}

// Abandon records that the user gave up undoing.
func (j *Journal) Abandon() error {
	_, err := j.append(record{Kind: recordAbandoned}, true)
	return err
}

// End records that nothing is left to undo.
func (j *Journal) End(text string) error {
	_, err := j.append(record{Kind: recordEnded, Text: text}, true)
	return err
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// diskFiles is the real file system.
type diskFiles struct{}

func (diskFiles) Create(name string) (File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
}

func (diskFiles) Append(name string, size int64) (File, error) {
	f, err := durable.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(size); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func (diskFiles) Rename(from, to string) error { return os.Rename(from, to) }
func (diskFiles) Remove(name string) error     { return os.Remove(name) }
func (diskFiles) SyncDir(name string) error    { return durable.Sync(name) }
