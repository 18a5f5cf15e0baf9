package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
)

// evaluateDeadline bounds evaluation: a hostile query must not keep a bundle from being sealed.
const evaluateDeadline = 10 * time.Minute

// finish evaluates and seals.
func (x *execution) finish(ctx context.Context, out executor.Outcome) (Outcome, error) {
	if err := x.options.at("session.ran"); err != nil {
		return Outcome{}, err
	}
	outcome := Outcome{Run: x.ID, Dir: x.dir, Ended: out.Ended, Problems: out.Problems}
	for _, thing := range out.Left {
		outcome.Left = append(outcome.Left, thing.String())
	}
	summary := x.summarise(ctx, out)
	summary.Refused = out.Refused
	if err := x.options.at("session.seal"); err != nil {
		return Outcome{}, err
	}
	if err := x.record.writer.Seal(summary); err != nil {
		return Outcome{}, x.unsealed(err, out)
	}
	outcome.Verdict, outcome.Reason, outcome.Exit = summary.Verdict, summary.Reason, exitCode(summary)
	outcome.Validity, outcome.ValidityReason = summary.Validity, summary.ValidityReason
	err := x.options.at("session.sealed")
	if err == nil && len(out.Left) == 0 {
		err = x.forget()
	}
	return outcome, err
}

// unsealed returns the error for a run whose record could not be completed.
func (x *execution) unsealed(cause error, out executor.Outcome) error {
	e := &diag.Error{
		Code: "record-lost", Exit: diag.ExitUndecided, Err: cause,
		Message: "the run cannot be recorded, so it was stopped and everything was undone",
		Hint:    "free space, or choose another place with --runs DIR, and run again",
	}
	if len(out.Left) > 0 {
		e.Message = "the run cannot be recorded, so it was stopped; not everything could be undone"
		return e
	}
	if _, err := os.Stat(x.dir); errors.Is(err, fs.ErrNotExist) {
		return errors.Join(e, x.forget()) // clean would find nothing to do
	}
	return e
}

// summarise evaluates the record.
func (x *execution) summarise(ctx context.Context, out executor.Outcome) result.Summary {
	in := evaluate.Input{Scenario: x.Scenario, Ended: out.Ended, Reason: out.Reason}
	incomplete := errors.Join(x.options.at("session.evaluate"), x.record.writer.Flush())
	store := x.record.cache.take()
	lacks := x.endRemote(ctx) // nothing is appended any more
	if store != nil {
		defer keep(store, filepath.Join(x.dir, metric.Dir))
	}
	b, err := result.Open(x.dir)
	if err != nil {
		return undecided(in, err)
	}
	defer b.Close()
	asked := &queries{bundle: b, live: store}
	defer asked.close()
	in.Bundle, in.Metrics = b, asked
	s := summaryOf(context.WithoutCancel(ctx), in)
	if lacks != "" {
		s.Caveats = append(s.Caveats, lacks)
	}
	if incomplete != nil {
		s.Caveats = append(s.Caveats, fmt.Sprintf("The record is incomplete: %v.", incomplete))
		s.Reason = strings.TrimSpace("The record is incomplete. " + s.Reason)
		s.Validity, s.ValidityReason = result.Invalid, "The record is incomplete."
		if s.Verdict == result.Pass || s.Verdict == result.Completed {
			s.Verdict = result.Undecided
		}
	}
	return s
}

// summaryOf evaluates. Evaluation that fails must not cost the bundle its seal: the record is worth more than
// the summary, which can be made again.
func summaryOf(ctx context.Context, in evaluate.Input) result.Summary {
	ctx, cancel := context.WithTimeout(ctx, evaluateDeadline)
	defer cancel()
	s, err := evaluate.Run(ctx, in)
	if err != nil {
		return undecided(in, err)
	}
	return s
}

func undecided(in evaluate.Input, err error) result.Summary {
	return result.Summary{
		Verdict: result.Undecided, Validity: result.Invalid, ValidityReason: "The run could not be evaluated.", Ended: in.Ended, Results: []result.Evaluated{},
		Reason: strings.TrimSpace(fmt.Sprintf("%s The run could not be evaluated: %v", in.Reason, err)),
	}
}

// exitCode derives the exit code of the process from a sealed summary.
func exitCode(s result.Summary) int {
	if s.Ended == result.EndedInterrupted {
		return diag.ExitInterrupted
	}
	return s.ExitCode()
}

// forget removes the journal of this run, of which nothing is left.
func (x *execution) forget() error {
	if err := x.options.at("session.forget"); err != nil {
		return err
	}
	return forgetRun(x.Order.Runs, x.ID)
}

// forgetRun removes the journal of a run of which nothing is left, and the folder that held its machines.
func forgetRun(runs, id string) error {
	if err := control.RemoveJournal(runs, id); err != nil {
		return err
	}
	folder, err := durable.OpenFolder(runs)
	if err != nil {
		return err
	}
	if err := errors.Join(folder.Remove(path.Join(id, machinesFolder)), folder.Close()); err != nil {
		return fmt.Errorf("remove the folder of the run's machines: %w", err)
	}
	return nil
}
