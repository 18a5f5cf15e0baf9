package control

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
)

// Leftover is what is not undone according to the journal of one run.
type Leftover struct {
	Header Header
	Things []Thing
	// Back are the nodes, by id, that were powered off and on again. They may still boot.
	Back  []string
	Phase plan.Phase // in which the controller died, "" before the first
	// Abandoned: the user gave up undoing.
	Abandoned bool
	// Ended: nothing remains to be done.
	Ended bool
	// LastRecord is when the journal was last written.
	LastRecord time.Time
}

// Recover reads the journals of a runs directory, also incomplete ones, and returns the runs with leftovers, in the order of
// their ids. The caller must hold the lease of the target; otherwise a run may still be active.
func Recover(runs string) ([]Leftover, error) {
	if err := checkControl(runs); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(controlDir(runs))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journals: %w", err)
	}
	var out []Leftover
	for _, entry := range entries {
		run, ok := strings.CutSuffix(entry.Name(), journalSuffix)
		if !ok {
			continue
		}
		left, err := RecoverRun(runs, run)
		if err != nil {
			return out, err
		}
		if !left.Ended {
			out = append(out, left)
		}
	}
	return out, nil
}

// RecoverRun reads the journal of one run.
func RecoverRun(runs, run string) (Leftover, error) {
	if err := checkRunID(run); err != nil {
		return Leftover{}, err
	}
	if err := checkControl(runs); err != nil {
		return Leftover{}, err
	}
	data, err := os.ReadFile(journalPath(runs, run))
	if err != nil {
		return Leftover{}, fmt.Errorf("read journal of run %q: %w", run, err)
	}
	records, _ := decodeRecords(data)
	left, _, err := fold(records)
	if err != nil {
		return left, fmt.Errorf("read journal of run %q: %w", run, err)
	}
	return left, nil
}

// fold plays the records of a journal.
func fold(records []record) (Leftover, *Journal, error) {
	if len(records) == 0 {
		return Leftover{}, nil, errors.New("it has no header")
	}
	j := &Journal{header: *records[0].Header, open: map[string]Thing{}}
	left := Leftover{Header: j.header}
	if j.header.Format > journalFormat {
		return left, nil, fmt.Errorf("format %d is newer than this program knows (%d)", j.header.Format, journalFormat)
	}
	for _, r := range records {
		if r.Thing != nil && r.Thing.Kind == ThingStep && r.Thing.Call == nil {
			return left, nil, fmt.Errorf("record %d has a step without its call", r.Seq)
		}
		j.seq = r.Seq
		j.note(r)
		left.LastRecord = r.At
		if r.Thing != nil && r.Thing.Kind == ThingNodeOff {
			left.Back = slices.DeleteFunc(left.Back, func(node string) bool { return node == r.Thing.Node })
			if r.Kind == recordUndone {
				left.Back = append(left.Back, r.Thing.Node)
			}
		}
		switch r.Kind {
		case recordPhase:
			left.Phase = plan.Phase(r.Text)
		case recordAbandoned:
			left.Abandoned = true
		case recordEnded:
			left.Ended = true
		}
	}
	left.Things = j.Left()
	return left, j, nil
}

// OpenJournal opens the journal of a dead run for more records, cutting off a torn end.
func OpenJournal(runs, run string, files Files, failpoint func(string) error) (*Journal, error) {
	if files == nil {
		files = diskFiles{}
	}
	path := journalPath(runs, run)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("open journal of run %q: %w", run, err)
	}
	records, good := decodeRecords(data)
	_, j, err := fold(records)
	if err != nil {
		return nil, fmt.Errorf("open journal of run %q: %w", run, err)
	}
	j.files, j.path, j.fail = files, path, failpoint
	if j.file, err = files.Append(path, int64(good)); err != nil {
		return nil, fmt.Errorf("open journal of run %q: %w", run, err)
	}
	return j, nil
}

// RemoveJournal deletes the journal of a run without leftovers, and the run's private folder.
func RemoveJournal(runs, run string) error {
	left, err := RecoverRun(runs, run)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !left.Ended {
		return &diag.Error{Code: "run-not-clean", Exit: diag.ExitRefused,
			Message: fmt.Sprintf("run %q has left something behind", run), Hint: "bragg clean removes it"}
	}
	if err := os.RemoveAll(privatePath(runs, run)); err != nil {
		return fmt.Errorf("remove the private folder of run %q: %w", run, err)
	}
	return os.Remove(journalPath(runs, run))
}
