package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// Leftover is what the journal of one run says that is not undone.
type Leftover struct {
	Header Header
	Things []Thing
	Phase  Phase // in which the controller died, "" before the first
	// Abandoned: the user gave up undoing.
	Abandoned bool
	// Ended: nothing is left to do.
	Ended bool
	// LastRecord is when the journal was last written.
	LastRecord time.Time
}

// Recover reads the journals of a runs directory, cut or not, and returns those runs of which something is left, in the
// order of their ids. The caller must hold the lease of the target, else a run may still be going on.
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
		j.seq = r.Seq
		j.note(r)
		left.LastRecord = r.At
		switch r.Kind {
		case recordPhase:
			left.Phase = Phase(r.Text)
		case recordAbandoned:
			left.Abandoned = true
		case recordEnded:
			left.Ended = true
		}
	}
	left.Things = j.Left()
	return left, j, nil
}

// openJournal opens the journal of a dead run for more records, cutting off a torn end.
func openJournal(runs, run string, files Files) (*Journal, error) {
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
	j.files, j.path = files, path
	if j.file, err = files.Append(path, int64(good)); err != nil {
		return nil, fmt.Errorf("open journal of run %q: %w", run, err)
	}
	return j, nil
}

// Cleaner undoes what a dead run left.
type Cleaner struct {
	Runs    string // the runs directory
	Target  target.Target
	Catalog Catalog           // to bind Undoers and the steps of teardown again
	Plan    *Plan             // of the run, read from its bundle; nil leaves out the scenario's own teardown
	Dir     string            // in which programs of the teardown run; "" with a plan that allows none
	Say     func(text string) // may be nil
	Files   Files             // nil: the real file system
	// Failpoint makes named places fail in tests; nil otherwise.
	Failpoint func(name string) error
	// Deadline bounds each part of undoing; 0: ten minutes.
	Deadline time.Duration
}

// Undo takes back, in order, what run left: it powers on the nodes that the run powered off, carries out the scenario's
// teardown unless the run had come to its end, takes back what its steps did, and deletes its VMs. It never continues
// the run. It is idempotent and may be called again after any failure. The
// caller holds the lease of the target.
func (c *Cleaner) Undo(ctx context.Context, run string) error {
	fail := failpoints(c.Failpoint)
	if err := fail.at("recover.read"); err != nil {
		return err
	}
	left, err := RecoverRun(c.Runs, run)
	if err != nil {
		return err
	}
	if left.Ended {
		return nil
	}
	journal, err := openJournal(c.Runs, run, c.Files)
	if err != nil {
		return err
	}
	defer journal.Close()
	journal.fail = fail
	inventory, err := c.Target.Inventory(ctx)
	if err != nil {
		return fmt.Errorf("undo run %q: %w", run, err)
	}
	u := c.undoer(journal, inventory)
	if err := fail.at("recover.undo"); err != nil {
		return err
	}
	var errs []error
	for _, item := range []undoItem{undoPower, undoSteps, undoVMs} {
		bounded, cancel := context.WithTimeout(ctx, c.deadline())
		errs = append(errs, u.item(bounded, item))
		cancel()
		if item == undoPower && phaseOrder(left.Phase) >= 0 {
			c.teardown(ctx, u, inventory)
			_, _ = journal.append(record{Kind: recordPhase, Text: string(Undoing)}, false)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("undo run %q: %w", run, err)
	}
	if err := journal.end("cleaned"); err != nil {
		return err
	}
	return fail.at("recover.ended")
}

func (c *Cleaner) deadline() time.Duration {
	if c.Deadline > 0 {
		return c.Deadline
	}
	return undoDeadlineDefault
}

func (c *Cleaner) undoer(journal *Journal, inventory target.Inventory) *undoer {
	done := &Plan{scenario: &scenario.Scenario{}}
	if c.Plan != nil {
		known := *c.Plan
		done = &known
	}
	done.Target.Nodes = inventory.Nodes // what indexes count, whatever the run saw
	f := &fleet{plan: done, target: c.Target, tag: journal.header.Tag, journal: journal, fail: c.Failpoint,
		runner: func(context.Context, target.VM) (load.Runner, error) { return nil, ErrStopping }, cuts: map[string]int{},
		placed: func(target.VM) {}, moves: newMoves(func(stray) {})}
	n := &nodes{list: inventory.Nodes, fleet: f}
	say := c.Say
	if say == nil {
		say = func(string) {}
	}
	u := &undoer{fleet: f, nodes: n, journal: journal, fail: c.Failpoint, say: say}
	u.env = func(thing Thing) (*Env, Step, error) {
		kind, ok := c.Catalog.Kind(thing.Call.Name)
		if !ok {
			return nil, nil, fmt.Errorf("take back %s: there is no such step", thing.Call.Name)
		}
		if err := f.Refresh(context.Background()); err != nil {
			return nil, nil, err
		}
		step := boundStep{kind: kind, call: *thing.Call}.rebind(1)
		return c.env(u, plan.Step{ID: thing.Step, Phase: Undoing, Name: kind.Name}), step, nil
	}
	return u
}

// env is what a step sees after the death of its run.
func (c *Cleaner) env(u *undoer, p plan.Step) *Env {
	return &Env{VMs: u.fleet, Power: u.fleet, Nodes: u.nodes, Loads: deadLoads{}, Notes: quietNotes{u.say}, Work: deadWork{},
		Target: c.Target, Tag: u.fleet.tag, Plan: u.fleet.plan, Step: p, Scenario: u.fleet.plan.scenario,
		Dir: c.Dir, Private: u.journal.private()}
}

// deadLoads and deadWork begin nothing: the run is over.
type deadLoads struct{}

func (deadLoads) Start(context.Context, LoadSpec) error                   { return ErrStopping }
func (deadLoads) Wait(context.Context, string, bool, time.Duration) error { return ErrStopping }
func (deadLoads) Stop(context.Context, string) error                      { return nil }

type deadWork struct{}

func (deadWork) Go(string, func(context.Context) error) error { return ErrStopping }

// quietNotes passes everything on as plain text.
type quietNotes struct{ say func(string) }

func (n quietNotes) Annotate(text string)         { n.say(text) }
func (n quietNotes) Log(text string)              { n.say(text) }
func (n quietNotes) Disturb(subject, text string) { n.say(subject + ": " + text) }

// RemoveJournal deletes the journal of a run of which nothing is left, and the run's private folder.
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
