package executor_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/planner/plannertest"
)

// faultyFiles are files on disk whose operations fail from the n-th on, or only the n-th.
type faultyFiles struct {
	mu      sync.Mutex
	count   int
	from    int // fail at this operation, 0: never
	once    bool
	torn    bool // a failing write leaves half its bytes
	reached bool
}

// failFrom makes every operation fail from the n-th next one on.
func (f *faultyFiles) failFrom(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.from = f.count + n
}

var errDisk = errors.New("no space left on device")

func (f *faultyFiles) step() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if f.from > 0 && (f.count == f.from || f.count > f.from && !f.once) {
		f.reached = true
		return errDisk
	}
	return nil
}

func (f *faultyFiles) Create(name string) (control.File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	return &faultyFile{f, file}, err
}

func (f *faultyFiles) Append(name string, size int64) (control.File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	if err := os.Truncate(name, size); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	return &faultyFile{f, file}, err
}

func (f *faultyFiles) Rename(from, to string) error {
	if err := f.step(); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (f *faultyFiles) SyncDir(string) error { return f.step() }

// Remove never fails: it is for what another failure left.
func (f *faultyFiles) Remove(name string) error { return os.Remove(name) }

type faultyFile struct {
	files *faultyFiles
	file  *os.File
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.files.step(); err != nil {
		if f.files.torn {
			n, _ := f.file.Write(p[:len(p)/2])
			return n, err
		}
		return 0, err
	}
	return f.file.Write(p)
}

func (f *faultyFile) Sync() error  { return f.files.step() } // a real sync would only cost time here
func (f *faultyFile) Close() error { return f.file.Close() }

// TestEveryJournalFailure fails the k-th operation of the journal, for every k, once or permanently, with whole or torn
// writes: the run stops, undoes its changes, and the remaining journal can be cleaned safely.
func TestEveryJournalFailure(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for _, kind := range []struct {
		name       string
		once, torn bool
	}{{"once", true, false}, {"torn", true, true}, {"for good", false, true}} {
		t.Run(kind.name, func(t *testing.T) {
			for k := 1; ; k++ {
				reached := false
				t.Run(fmt.Sprint(k), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						reached = failJournal(t, &faultyFiles{from: k, once: kind.once, torn: kind.torn})
					})
				})
				if !reached {
					if k < 30 {
						t.Errorf("only %d operations of the journal failed", k-1)
					}
					return
				}
			}
		})
	}
}

func failJournal(t *testing.T, files *faultyFiles) (reached bool) {
	l := newLab(t, 3)
	journal, err := l.Journal(files, nil)
	if err != nil {
		if left, err := control.Recover(l.Runs); err != nil || len(left) > 0 {
			t.Errorf("a journal that was not created leaves %v (%v)", left, err)
		}
		if entries, _ := os.ReadDir(filepath.Join(l.Runs, ".control")); len(entries) != 1 {
			t.Errorf("files are left: %v", entries)
		}
		return true
	}
	defer journal.Close()
	outcome := l.runWith(eventful, journal, nil)
	if !files.reached {
		if outcome.Ended != executor.Completed || len(outcome.Problems) > 0 {
			t.Errorf("without a failure: %+v", outcome)
		}
		return false
	}
	if outcome.Ended == executor.Completed && len(outcome.Problems) == 0 {
		t.Errorf("not noticed: %+v", outcome)
	}
	if len(outcome.Left) > 0 {
		t.Errorf("left %v", outcome.Left)
	}
	l.MustBeClean()
	l.clean()
	return true
}

// TestJournalCutAnywhere truncates the journal of a run at every byte: it is read up to there, and cleaning from it leaves
// none of the changes made until then.
func TestJournalCutAnywhere(t *testing.T) {
	var data []byte
	var path string
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		if outcome := l.run(longRun, nil); outcome.Ended != executor.Completed {
			t.Fatal(outcome)
		}
		path = filepath.Join(l.Runs, ".control", "r1.journal")
		data, _ = os.ReadFile(path)
	})
	runs := t.TempDir()
	cut := filepath.Join(runs, ".control", "r1.journal")
	if err := os.MkdirAll(filepath.Dir(cut), 0o700); err != nil {
		t.Fatal(err)
	}
	header := bytes.IndexByte(data, '\n') + 1
	if lines := bytes.Count(data, []byte("\n")); lines < 10 {
		t.Fatalf("only %d records", lines)
	}
	before := -1
	for n := 0; n <= len(data); n++ {
		if err := os.WriteFile(cut, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		left, err := control.RecoverRun(runs, "r1")
		switch {
		case n < header && err == nil:
			t.Fatalf("cut at %d, inside the header, it was read", n)
		case n < header:
			continue
		case err != nil:
			t.Fatalf("cut at %d: %v", n, err)
		case left.Header.Run != "r1" || left.Ended != (n == len(data)):
			t.Fatalf("cut at %d: %+v", n, left)
		}
		// Nothing is known before its record is whole: the state changes only where a line ends.
		if now := len(left.Things); now != before && before >= 0 && data[n-1] != '\n' {
			t.Fatalf("cut at %d, inside a record, %d things are open instead of %d", n, now, before)
		} else {
			before = now
		}
	}
}

// Reading stops at a damaged byte; the entries before it remain valid.
func TestJournalDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.run(plannertest.Head+plannertest.Deployed+"run:\n  - test.Wait: {duration_secs: 1}\n", nil)
		path := filepath.Join(l.Runs, ".control", "r1.journal")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		header := bytes.IndexByte(data, '\n') + 1
		for i := header; i < len(data); i += 7 {
			damaged := bytes.Clone(data)
			damaged[i] ^= 0x20
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			left, err := control.RecoverRun(l.Runs, "r1")
			if err != nil || left.Ended {
				t.Fatalf("byte %d damaged: %+v, %v", i, left, err)
			}
		}
	})
}

func TestJournalsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.runDying(longRun, nth("load.started", 1))
		var refused *diag.Error
		if err := control.RemoveJournal(l.Runs, "r1"); !errors.As(err, &refused) || refused.ExitCode() != diag.ExitRefused {
			t.Errorf("remove the journal of a run that left something: %v", err)
		}
		if _, err := l.Journal(nil, nil); err == nil {
			t.Error("a second journal of the same run replaced the first")
		}
		if _, err := control.RecoverRun(l.Runs, "../r1"); err == nil {
			t.Error("a run id with a path was read")
		}
		l.clean()
	})
}

func FuzzDecodeJournal(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("00000000 {}\n"))
	f.Add([]byte(`6d36f7c4 {"seq":1,"at":"2026-01-01T00:00:00Z","kind":"header","header":{"format":1,"run":"r"}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		runs := t.TempDir()
		path := filepath.Join(runs, ".control", "r.journal")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		left, err := control.RecoverRun(runs, "r")
		if err == nil && left.Header.Format == 0 {
			t.Errorf("read without a header: %+v", left)
		}
	})
}
