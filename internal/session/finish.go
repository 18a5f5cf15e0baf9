package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/run"
)

// evaluateDeadline bounds evaluation: a hostile query must not keep a bundle from being sealed.
const evaluateDeadline = 10 * time.Minute

// finish evaluates and seals.
func (c *carrier) finish(ctx context.Context, out run.Outcome) (Outcome, error) {
	if err := c.options.at("session.ran"); err != nil {
		return Outcome{}, err
	}
	outcome := Outcome{Run: c.ID, Dir: c.dir, Ended: out.Ended, Problems: out.Problems}
	for _, thing := range out.Left {
		outcome.Left = append(outcome.Left, thing.String())
	}
	summary := c.summarise(ctx, out)
	summary.Refused = out.Refused
	if err := c.options.at("session.seal"); err != nil {
		return Outcome{}, err
	}
	if err := c.record.writer.Seal(summary); err != nil {
		return Outcome{}, c.unsealed(err, out)
	}
	outcome.Verdict, outcome.Reason, outcome.Exit = summary.Verdict, summary.Reason, exitCode(summary)
	err := c.options.at("session.sealed")
	if err == nil && len(out.Left) == 0 {
		err = c.forget()
	}
	return outcome, err
}

// unsealed says what a run was worth whose record could not be completed, and how it ended all the same.
func (c *carrier) unsealed(cause error, out run.Outcome) error {
	e := &diag.Error{
		Code: "record-lost", Exit: diag.ExitUndecided, Err: cause,
		Message: "the run cannot be recorded, so it was stopped and everything was undone",
		Hint:    "free space, or choose another place with --runs DIR, and run again",
	}
	if len(out.Left) > 0 {
		e.Message = "the run cannot be recorded, so it was stopped; not everything could be undone"
		return e
	}
	if _, err := os.Stat(c.dir); errors.Is(err, fs.ErrNotExist) {
		return errors.Join(e, c.forget()) // clean would find nothing to do
	}
	return e
}

// summarise evaluates what was recorded.
func (c *carrier) summarise(ctx context.Context, out run.Outcome) result.Summary {
	in := Evaluation{Scenario: c.Scenario, Ended: out.Ended, Reason: out.Reason, SizeBound: sizeBound(&c.Plan.Plan)}
	incomplete := errors.Join(c.options.at("session.evaluate"), c.record.writer.Flush())
	store := c.record.cache.take()
	lacks := c.endRemote(ctx) // nothing is appended any more
	if store != nil {
		defer keep(store, filepath.Join(c.dir, metric.Dir))
	}
	b, err := result.Open(c.dir)
	if err != nil {
		return undecided(in, err)
	}
	defer b.Close()
	asked := &queries{bundle: b, live: store}
	defer asked.close()
	in.Bundle, in.Metrics = b, asked
	s := evaluate(context.WithoutCancel(ctx), in)
	if lacks != "" {
		s.Caveats = append(s.Caveats, lacks)
	}
	if incomplete != nil {
		s.Caveats = append(s.Caveats, fmt.Sprintf("Not everything could be recorded: %v.", incomplete))
		s.Reason = joinSentences("Not everything could be recorded.", s.Reason)
		if s.Verdict == result.Pass {
			s.Verdict = result.Undecided
		}
	}
	return s
}

// evaluate makes the summary. Evaluation that fails must not cost the bundle its seal: the record is worth more than
// the summary, which can be made again.
func evaluate(ctx context.Context, in Evaluation) result.Summary {
	ctx, cancel := context.WithTimeout(ctx, evaluateDeadline)
	defer cancel()
	s, err := Evaluate(ctx, in)
	if err != nil {
		return undecided(in, err)
	}
	return s
}

func undecided(in Evaluation, err error) result.Summary {
	return result.Summary{
		Verdict: result.Undecided, Ended: in.Ended, Results: []result.Evaluated{},
		Reason: joinSentences(in.Reason, fmt.Sprintf("The run could not be evaluated: %v", err)),
	}
}

func joinSentences(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}

// sizeBound returns the starts that have no runtime, neither from their step nor from their configuration, and so last until
// their data is through. Instances of a workload count its starts in the order of the steps.
func sizeBound(p *plan.Plan) analysis.SizeBound {
	out, count := analysis.SizeBound{}, map[string]int{}
	for _, s := range p.Steps {
		if s.Starts == nil || s.Starts.Prefill {
			continue
		}
		count[s.Workload]++
		w, planned := p.Workload(s.Workload)
		if s.Starts.Runtime == 0 && !(planned && w.Load != nil && w.Load.Timed) {
			out[analysis.Start{Workload: s.Workload, Instance: count[s.Workload]}] = true
		}
	}
	return out
}

// sizeBoundOf reads the same from the plan of a bundle.
func sizeBoundOf(b *result.Bundle) analysis.SizeBound {
	p, err := planIn(b)
	if err != nil || len(p.Steps) == 0 {
		return nil
	}
	return sizeBound(p)
}

// planIn reads the plan of a bundle; an empty one where there is none.
func planIn(b *result.Bundle) (*plan.Plan, error) {
	text, err := b.Plan()
	if err != nil || len(text) == 0 {
		return &plan.Plan{}, err
	}
	p, err := plan.Read(text)
	if err != nil {
		return &plan.Plan{}, err
	}
	return p, nil
}

// exitCode derives the exit code of the process from a sealed summary.
func exitCode(s result.Summary) int {
	switch {
	case s.Ended == result.EndedInterrupted:
		return diag.ExitInterrupted
	case s.Refused:
		return diag.ExitRefused
	case s.Verdict == result.Pass:
		return diag.ExitPass
	case s.Verdict == result.Failed:
		return diag.ExitFailed
	}
	return diag.ExitUndecided
}

// forget removes the journal of this run, of which nothing is left.
func (c *carrier) forget() error {
	if err := c.options.at("session.forget"); err != nil {
		return err
	}
	return forgetRun(c.Order.Runs, c.ID)
}

// forgetRun removes the journal of a run of which nothing is left, and the folder that held its machines.
func forgetRun(runs, id string) error {
	if err := control.RemoveJournal(runs, id); err != nil {
		return err
	}
	if err := os.Remove(machinesDir(runs, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the folder of the run's machines: %w", err)
	}
	return nil
}
