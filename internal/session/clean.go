package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session/restore"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/trust"
)

// Cleaning selects what to clean. It is idempotent, so it may be started at any time.
type Cleaning struct {
	Runs    string   // the runs directory
	Only    []string // run ids; empty: all dead runs
	Program Program
	Say     func(run, text string) // may be nil
	// AllowShell lets teardowns run programs of their scenarios. Permission for the run does not count: its folder may be that of
	// others, who wrote the scenario into it.
	AllowShell bool
	// Patience is shorter in tests with simulated hosts.
	Patience restore.Patience
	// Failpoint makes named places fail in tests; nil otherwise.
	Failpoint func(name string) error
}

// Cleaned is the outcome for one run.
type Cleaned struct {
	Run    string   `json:"run"`
	Dir    string   `json:"dir,omitempty"` // of its bundle; empty when it had none
	Undone []string `json:"undone"`        // changes outside that were undone
	Sealed bool     `json:"sealed"`        // its bundle was sealed as aborted now
	// Left is what may be left outside of its VMs, and which nothing removes now: the tables of an endpoint.
	Left []string `json:"left,omitempty"`
	Live bool     `json:"live"` // in progress, or its target is in use: it was skipped
	Err  error    `json:"-"`
}

// Clean cleans up after dead runs: it undoes all their changes outside, then seals their bundles as aborted. Runs in
// progress are skipped. The error is for the directory as a whole; the failure of a single run is in its Cleaned.
func Clean(ctx context.Context, c Cleaning) ([]Cleaned, error) {
	if err := control.CheckWriters(c.Runs); err != nil {
		return nil, err
	}
	if err := removeTemporary(c.Runs); err != nil {
		return nil, err
	}
	ids, err := Unfinished(c.Runs)
	if err != nil {
		return nil, err
	}
	var out []Cleaned
	for _, id := range ids {
		if len(c.Only) > 0 && !slices.Contains(c.Only, id) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if done, acted := c.one(ctx, id); acted {
			out = append(out, done)
		}
	}
	if len(c.Only) > 0 {
		return out, nil
	}
	return out, c.freeLeases(ctx)
}

// removeTemporary removes the half-written files of programs that died, also from bundles that are sealed: a report is made
// after that.
func removeTemporary(runs string) error {
	bundles, err := result.List(runs)
	err = errors.Join(control.RemoveTemporary(runs), err)
	for _, b := range bundles {
		err = errors.Join(err, result.RemoveTemporary(b.Dir))
	}
	return err
}

// Unfinished lists runs with a journal or an unsealed bundle, ordered by id: they are in progress, or their controller
// died.
func Unfinished(runs string) ([]string, error) {
	ids, err := control.Journals(runs)
	if err != nil {
		return nil, err
	}
	bundles, err := result.List(runs)
	if err != nil {
		return nil, err
	}
	for _, b := range bundles {
		if b.State == result.StateRunning && b.Err == nil {
			ids = append(ids, filepath.Base(b.Dir))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// one cleans one run; acted reports whether there was anything to do.
func (c Cleaning) one(ctx context.Context, id string) (done Cleaned, acted bool) {
	done = Cleaned{Run: id, Undone: []string{}}
	left, err := control.RecoverRun(c.Runs, id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// It died before it changed anything outside, or was cleaned up to its seal.
	case err != nil:
		done.Err = err
		return done, true
	default:
		if done.Err = c.undo(ctx, left, &done); done.Err != nil || done.Live {
			return done, true
		}
	}
	// What the run changed elsewhere is undone by now, whatever is in the place of its folder.
	if done.Err = durable.CheckFolder(c.Runs, id); done.Err == nil {
		done.Err = c.seal(ctx, left, &done)
	}
	if done.Err == nil && !done.Live && err == nil {
		done.Err = forgetRun(c.Runs, id)
	}
	return done, true
}

// undo reverts the remaining changes of the run, under the lease of its target.
func (c Cleaning) undo(ctx context.Context, left control.Leftover, done *Cleaned) error {
	var how journalTarget
	if err := json.Unmarshal(left.Header.Target, &how); err != nil {
		return fmt.Errorf("read the target of run %q: %w", done.Run, err)
	}
	lease, err := control.AcquireLease(c.Runs, how.Lease, done.Run, c.Failpoint)
	if isLocked(err) {
		done.Live = true
		return nil
	}
	if err != nil {
		return err
	}
	// The run may have ended by itself before the lease was acquired.
	if left, err = control.RecoverRun(c.Runs, done.Run); err == nil && !left.Ended {
		err = c.undoHeld(ctx, left, lease, how, done)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, lease.Release())
}

func isLocked(err error) bool {
	var locked *diag.Error
	return errors.As(err, &locked) && locked.Exit == diag.ExitLocked
}

// undoHeld undoes what the run left. Nodes that it powered off come first: see package restore.
func (c Cleaning) undoHeld(ctx context.Context, left control.Leftover, lease *control.Lease, how journalTarget, done *Cleaned) (err error) {
	// A teardown may switch VMs on: those get identities of an authority that ends with this cleaning.
	identities, err := trust.New(done.Run, identityLife)
	if err != nil {
		return err
	}
	folder, foreign := done.Run, durable.CheckFolder(c.Runs, done.Run)
	if foreign != nil {
		folder = noRun // its files are not in reach, and the target has what else is to undo
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	say := func(text string) { c.say(done.Run, text) }
	way := &restore.Way{
		Config: how.Config, BMCs: how.BMCs, Identity: how.Identity, Lease: lease, Note: left.Header.Target, Patience: c.Patience, Say: say, Failpoint: c.Failpoint,
		Open: func(ctx context.Context) (target.Target, error) {
			return openTarget(ctx, opening{how.Config, c.Runs, folder, c.Program, identities})
		},
	}
	defer func() { err = errors.Join(err, way.Close()) }()
	cleaner := executor.Cleaner{Runs: c.Runs, Catalog: Catalog(), Failpoint: c.Failpoint, Say: say}
	cleaner.Restored, err = way.Reach(ctx, left)
	if isLocked(err) {
		say(err.Error())
		done.Live = true
		return nil
	}
	if err != nil {
		return err
	}
	cleaner.Target = way.Target()
	dir := filepath.Join(c.Runs, done.Run)
	if cleaner.Plan, err = planOf(dir); err == nil {
		err = foreign
	}
	if refused := c.refuseShell(done.Run, cleaner.Plan); err == nil && refused != nil {
		return refused // power is restored by now
	}
	if err == nil {
		cleaner.Dir, err = outputOf(dir, cleaner.Plan)
	}
	if err != nil {
		cleaner.Plan = nil
		c.say(done.Run, fmt.Sprintf("the scenario's teardown is left out: %v", err))
	}
	if done.Left, err = leftOutside(dir, cleaner.Plan); err != nil {
		c.say(done.Run, fmt.Sprintf("it is unknown whether data is left on endpoints: %v", err))
	}
	err = cleaner.Undo(ctx, done.Run)
	for _, thing := range left.Things {
		if err == nil {
			done.Undone = append(done.Undone, thing.Reverted())
		}
	}
	return err
}

// refuseShell refuses the teardown of a plan that runs programs of the scenario, unless the user allows it now.
func (c Cleaning) refuseShell(run string, p *planner.Plan) error {
	if p == nil || c.AllowShell || !p.AllowShell {
		return nil
	}
	catalog := Catalog()
	for _, s := range p.Steps {
		if kind, ok := catalog.Kind(s.Name); ok && s.Phase == plan.Teardown && kind.RunsPrograms() {
			return &diag.Error{Code: "shell-not-allowed", Exit: diag.ExitRefused,
				Message: fmt.Sprintf("the teardown of run %q runs programs of its scenario (step %d, %s), which is not allowed", run, s.ID, s.Name),
				Hint:    "--allow-shell allows it, if you trust this folder and its scenario"}
		}
	}
	return nil
}

// noRun is a folder that does not exist, for targets that are opened without the files of a run.
const noRun = "none"

// planOf reads the plan of a dead run; nil if it died before it had written the plan.
func planOf(dir string) (*planner.Plan, error) {
	b, err := result.Open(dir)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	text, err := b.Plan()
	if err != nil || text == nil {
		return nil, err
	}
	sc, err := attachedScenarioOf(b)
	if err != nil {
		return nil, err
	}
	return planner.ReadPlan(text, sc)
}

// outputOf is the folder of a dead run's bundle in which programs of its teardown run, as they would have in the run.
// A sealed bundle takes no more, and its run's teardown is over.
func outputOf(dir string, plan *planner.Plan) (string, error) {
	if plan == nil || !plan.AllowShell {
		return "", nil
	}
	w, err := result.Continue(dir)
	if errors.Is(err, result.ErrSealed) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	folder, err := w.AttachFolder(outputFolder)
	return folder, errors.Join(err, w.Close())
}

func (c Cleaning) say(run, text string) {
	if c.Say != nil {
		c.Say(run, text)
	}
}

// seal seals the run's bundle as aborted, if it has one that is not sealed.
func (c Cleaning) seal(ctx context.Context, left control.Leftover, done *Cleaned) error {
	dir := filepath.Join(c.Runs, done.Run)
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); errors.Is(err, fs.ErrNotExist) {
		return result.RemoveIncomplete(c.Runs, done.Run) // it died while it created the bundle, so nothing was recorded
	}
	done.Dir = dir
	w, err := result.Continue(dir)
	switch {
	case errors.Is(err, result.ErrBusy):
		done.Live = true
		return nil
	case errors.Is(err, result.ErrSealed):
		return nil
	case err != nil:
		return err
	}
	defer w.Close()
	if err := w.Seal(c.aborted(ctx, dir, left, done.Left)); err != nil {
		return err
	}
	done.Sealed = true
	return nil
}

// aborted evaluates the record of a dead run.
func (c Cleaning) aborted(ctx context.Context, dir string, left control.Leftover, outside []string) result.Summary {
	reason := "The program that ran it died"
	if left.Phase != "" {
		reason += " in the phase " + string(left.Phase)
	}
	reason += "."
	for _, what := range outside {
		reason += " Possibly left: " + what + "."
	}
	in := evaluate.Input{Ended: result.EndedAborted, Reason: reason}
	b, err := result.Open(dir)
	if err != nil {
		return undecided(in, err)
	}
	defer b.Close()
	in.Bundle = b
	if in.Scenario, err = attachedScenarioOf(b); err != nil {
		return undecided(in, err)
	}
	if store, err := metric.Rebuild(ctx, b, filepath.Join(dir, metric.Dir)); err == nil {
		defer keep(store, filepath.Join(dir, metric.Dir))
		in.Metrics = store
	}
	return summaryOf(ctx, in)
}

// freeLeases gives back what programs left of leases at targets that died without a journal: before they had one, or when it
// was removed already. A target that cannot be reached is left for the next time; its lease ends by itself too,
// and what else was cleaned is not to be hidden by it.
func (c Cleaning) freeLeases(ctx context.Context) error {
	notes, err := control.LeaseNotes(c.Runs)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range notes {
		errs = append(errs, c.freeLease(ctx, n))
	}
	return errors.Join(errs...)
}

func (c Cleaning) freeLease(ctx context.Context, n control.LeaseNote) error {
	var how journalTarget
	if err := json.Unmarshal(n.How, &how); err != nil {
		c.say("lease", fmt.Sprintf("read a note of it: %v", err))
		return nil
	}
	lease, err := control.AcquireLease(c.Runs, how.Lease, "bragg clean", nil)
	if isLocked(err) {
		return nil // its run is going on
	}
	if err != nil {
		return err
	}
	lease.Cleaning = true
	t, err := c.Patience.LookAt(ctx, func(ctx context.Context) (target.Target, error) {
		return openTarget(ctx, opening{how.Config, c.Runs, noRun, c.Program, nil})
	})
	if err != nil {
		c.say("lease of "+how.Lease, err.Error())
		return lease.Release()
	}
	if err := lease.AtTarget(ctx, t, n.How); err != nil {
		c.say("lease of "+how.Lease, err.Error())
	}
	return errors.Join(lease.Release(), t.Close())
}
