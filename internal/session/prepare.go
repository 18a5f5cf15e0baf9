package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/collect/builtin"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lint"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	targetbuiltin "github.com/braggdev/bragg/internal/target/builtin"
	"github.com/braggdev/bragg/internal/trust"
	"github.com/braggdev/bragg/internal/unit"
)

// Prepared is a scenario bound to an open target. Nothing has been changed yet.
type Prepared struct {
	Order     Order
	ID        string // of the run, if it comes to one
	Scenario  *scenario.Scenario
	Inventory target.Inventory
	Plan      *planner.Plan

	config     target.Config
	target     target.Target
	identities *trust.Authority // of the agents
}

// Prepare loads the scenario, opens the target and makes the plan. Errors are those of scenario.Load, of the provider
// and of planner.Compile.
func Prepare(ctx context.Context, o Order) (*Prepared, error) {
	sc, err := scenario.Load(ctx, o.Source, o.Variables)
	if err != nil {
		return nil, withFurtherFaults(err, sc, targetFaults(ctx, o, sc))
	}
	p := &Prepared{Order: o, ID: newID(time.Now()), Scenario: sc}
	if p.config, err = targetbuiltin.Load(o.Target); err != nil {
		return nil, err
	}
	if p.identities, err = trust.New(p.ID, identityLife); err != nil {
		return nil, err
	}
	if p.target, err = p.openTarget(ctx); err != nil {
		return nil, err
	}
	if err := p.compile(ctx); err != nil {
		return nil, errors.Join(withFurtherFaults(err, sc, nil), p.Close())
	}
	return p, nil
}

// withFurtherFaults adds the faults in later parts of a scenario to those that prevented it from being read or bound, so
// that the user sees all of them at once, and shows where the scenario's files are. Errors of other kinds are returned
// unchanged.
func withFurtherFaults(err error, sc *scenario.Scenario, more diag.List) error {
	var known *diag.ListError
	if sc == nil || !errors.As(err, &known) {
		return err
	}
	all := slices.Clone(known.List)
	for i := range all {
		all[i].Pos.File = sc.Path(all[i].Pos.File)
	}
	for _, further := range []diag.List{lint.Faults(sc, Catalog()), more} {
		before := slices.Clone(all) // a loop repeats a fault at the same place, once per iteration
		for _, d := range further {
			told := func(k diag.Diagnostic) bool { return k.Pos == d.Pos && k.Code == d.Code }
			if !slices.ContainsFunc(before, told) {
				all.Add(d)
			}
		}
	}
	if len(all) > len(known.List) {
		return all.Err()
	}
	known.List = all // of a *planner.Refusal, which knows the exit code
	return err
}

// targetFaults returns the target's faults in a partially read scenario; nothing if the target cannot be queried.
func targetFaults(ctx context.Context, o Order, sc *scenario.Scenario) diag.List {
	if sc == nil {
		return nil
	}
	p := &Prepared{Order: o, ID: newID(time.Now()), Scenario: sc}
	var err error
	if p.config, err = targetbuiltin.Load(o.Target); err != nil {
		return nil
	}
	if p.target, err = p.openTarget(ctx); err != nil {
		return nil
	}
	defer p.Close()
	if p.Inventory, err = p.config.Simulating(p.target.Inventory(ctx)); err != nil {
		return nil
	}
	return planner.CheckOn(sc, p.Inventory, target.Capabilities(p.target), o.Program.catalog(), o.Plan)
}

func (p *Prepared) compile(ctx context.Context) error {
	var err error
	if p.Inventory, err = p.config.Simulating(p.target.Inventory(ctx)); err != nil {
		return err
	}
	p.Plan, err = planner.Compile(p.Scenario, p.Inventory, target.Capabilities(p.target), p.Order.Program.catalog(), p.Order.Plan)
	if err != nil {
		return err
	}
	builtin.List(&p.config, &p.Plan.Plan)
	p.foreseeCuts(ctx)
	// Twice the estimate, because a run may take longer than it says.
	if p.identities != nil {
		err = p.identities.Expect(2*p.Plan.Estimate.Total + identityLife)
	}
	return err
}

// Preflight returns a *diag.Error if the plan does not fit its target. Its hint names a rehearsal that fits, if there
// is one.
func (p *Prepared) Preflight() error {
	err := planner.Preflight(p.Plan)
	var told *diag.Error
	if !errors.As(err, &told) {
		return err
	}
	if flags, small := p.rehearsal(); small != nil {
		told.Hint = fmt.Sprintf("a rehearsal fits: %s (%d VMs, %s)", flags, small.Footprint.VMs, unit.FormatBytes(small.Footprint.Bytes()))
	}
	return told
}

// Parameters of the suggested rehearsal.
const (
	rehearseSuggested = 60 * time.Second
	sizeSuggested     = 1 << 30 // the first size below the default
	sizeSuggestedMin  = 16 << 20
)

// rehearsal searches a rehearsal that fits, and returns its flags: one of the requested length, with as much data as fits.
func (p *Prepared) rehearsal() (flags string, plan *planner.Plan) {
	o := p.Order.Plan
	o.Rehearse = cmp.Or(o.Rehearse, rehearseSuggested)
	asked := cmp.Or(o.RehearseBytes, 2*sizeSuggested)
	for _, o.RehearseBytes = range append([]int64{o.RehearseBytes}, sizesBelow(asked)...) {
		plan, err := planner.Compile(p.Scenario, p.Inventory, target.Capabilities(p.target), p.Order.Program.catalog(), o)
		if err != nil || planner.Preflight(plan) != nil {
			continue
		}
		flags = fmt.Sprintf("--rehearse %gs", o.Rehearse.Seconds())
		if o.RehearseBytes > 0 {
			flags += fmt.Sprintf(" --rehearse-size %dMiB", o.RehearseBytes>>20)
		}
		return flags, plan
	}
	return "", nil
}

func sizesBelow(most int64) []int64 {
	var sizes []int64
	for size := int64(sizeSuggested); size >= sizeSuggestedMin; size /= 2 {
		if size < most {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

func (p *Prepared) openTarget(ctx context.Context) (target.Target, error) {
	return openTarget(ctx, opening{p.config, p.Order.Runs, p.ID, p.Order.Program, p.identities})
}

// Close closes the target. After Run it has no effect.
func (p *Prepared) Close() error {
	if p.target == nil {
		return nil
	}
	t := p.target
	p.target = nil
	return t.Close()
}

// machinesFolder is where a provider keeps the machines of one run, next to its bundle and not covered by its seal.
const machinesFolder = "vms"

// idRandomBytes make two runs of one second differ.
const idRandomBytes = 3

// newID returns a run id that sorts by time: "20250301-151204-k3f9a".
func newID(now time.Time) string {
	var random [idRandomBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:])
	return now.UTC().Format("20060102-150405") + "-" + strings.ToLower(text)
}
