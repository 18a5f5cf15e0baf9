// Package restore is the way back to the target of a dead run. The run may have left nodes without power, and all else that cleaning needs
// may be on them: the hosts themselves, the lease, the management of the platform, the API server. So power comes first, and needs only the
// journal and the BMCs:
//
//	enter: open, identity, lease, as far as the target answers ──▶ power by BMCs ──▶ await: enter again, nodes answer ──▶ undo
//
// A target that answers is still examined before anything is switched: another platform at its address, or another controller that
// uses it, ends the cleaning. One that does not answer keeps no node off.
package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/wait"
)

const (
	// openMax bounds how long a target whose nodes may be off has to answer, and lockMax how long taking its lease takes: longer than one
	// of an unknown holder is watched.
	openMax = 30 * time.Second
	lockMax = 3 * time.Minute
	// answerMax bounds how long nodes with restored power, and the platform that may run on them, take to answer.
	answerMax  = 20 * time.Minute
	answerPoll = 2 * time.Second
	// answerTry bounds one question to one node.
	answerTry = 30 * time.Second
)

// Patience is how long cleaning waits for hosts that were off. Zero fields get the defaults, as real hosts need them.
type Patience struct {
	BMCs   bmc.Options   // how BMCs are switched
	Open   time.Duration // for the target to answer before power is restored
	Answer time.Duration // for nodes to answer after that
}

// Way is the way back to one target.
type Way struct {
	Config   target.Config       // of the journal
	BMCs     []target.NodeConfig // of the journal, by the ids of the inventory; nil: those of Config
	Identity string              // of the platform; "" if it has none
	Lease    *control.Lease      // the half in the runs directory is taken
	Note     []byte              // what Lease.AtTarget notes
	Open     func(ctx context.Context) (target.Target, error)
	Patience Patience
	Say      func(text string)
	// Failpoint makes named places fail in tests; nil otherwise.
	Failpoint control.Failpoint

	target target.Target // nil: it could not be opened yet
	leased bool
}

// Target is nil if the target could not be opened.
func (w *Way) Target() target.Target { return w.target }

// enter opens the target, checks that it is the same, and takes its lease. It may be called again after an error, and continues. A target
// of which nothing is off has all the time that it takes.
func (w *Way) enter(ctx context.Context, nothingOff bool) error {
	if w.leased {
		return nil
	}
	open, lock := cmp.Or(w.Patience.Open, openMax), lockMax
	if nothingOff {
		open, lock = math.MaxInt64, math.MaxInt64
	}
	err := bounded(ctx, open, func(ctx context.Context) error {
		if w.target == nil {
			t, err := w.Open(ctx)
			if err != nil {
				return err
			}
			w.target = t
		}
		return target.CheckIdentity(ctx, w.target, w.Identity)
	})
	if err != nil && (!nothingOff || barred(err) || w.target == nil) {
		return err
	}
	err = bounded(ctx, lock, func(ctx context.Context) error { return w.Lease.AtTarget(ctx, w.target, w.Note) })
	w.leased = err == nil
	return err
}

// LookAt opens a target that may be switched off, within the time that is for that.
func (p Patience) LookAt(ctx context.Context, open func(ctx context.Context) (target.Target, error)) (t target.Target, err error) {
	err = bounded(ctx, cmp.Or(p.Open, openMax), func(ctx context.Context) error {
		t, err = open(ctx)
		return err
	})
	return t, err
}

// bounded calls do with a context that ends after some time unless do has returned by then: what it made may keep the context.
func bounded(ctx context.Context, most time.Duration, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(most, func() { cancel(fmt.Errorf("no answer in %v", most)) })
	defer timer.Stop()
	return do(ctx)
}

// barred reports whether an error of enter ends the cleaning, whatever is off.
func barred(err error) bool {
	var known *diag.Error
	return diag.ExitCode(err) == diag.ExitLocked || errors.As(err, &known) && known.Code == target.CodeAnother
}

// Close gives the target's half of the lease back, and closes the target.
func (w *Way) Close() error {
	if w.target == nil {
		return nil
	}
	return errors.Join(w.Lease.LeaveTarget(), w.target.Close())
}

// node finds a node and its BMC by the id in the journal.
func (w *Way) node(id string) (target.NodeConfig, bool) {
	known := w.BMCs
	if known == nil {
		known = w.Config.Nodes
	}
	i := slices.IndexFunc(known, func(n target.NodeConfig) bool { return n.ID == id && n.BMC != nil })
	if i < 0 {
		return target.NodeConfig{}, false
	}
	return known[i], true
}

// dark lists the nodes that the run powered off and whose BMCs the journal has.
func (w *Way) dark(left control.Leftover) []bmc.Dark {
	var nodes []bmc.Dark
	for _, t := range left.Things {
		if n, ok := w.node(t.Node); ok && t.Kind == control.ThingNodeOff {
			nodes = append(nodes, bmc.Dark{Node: n, Soft: t.Soft})
		}
	}
	return nodes
}

// back lists the nodes that the run powered off and on again.
func (w *Way) back(left control.Leftover) []bmc.Dark {
	var nodes []bmc.Dark
	for _, id := range left.Back {
		if n, ok := w.node(id); ok {
			nodes = append(nodes, bmc.Dark{Node: n})
		}
	}
	return nodes
}

// Reach enters the target, after power was restored to the nodes that the run powered off: restored has an entry for each, by id, which is
// nil if the node answers. Target is nil if the platform still does not answer. An error ends the cleaning; one with diag.ExitLocked is of
// another controller that uses the target.
func (w *Way) Reach(ctx context.Context, left control.Leftover) (restored map[string]error, err error) {
	dark, back := w.dark(left), w.back(left)
	if len(dark) > 0 {
		w.Say(fmt.Sprintf("this run powered off %s; looking first whether the target is used by others", nodeNames(dark)))
	}
	allOn := len(dark) == 0 && len(back) == 0
	switch err := w.enter(ctx, allOn); {
	case barred(err), err != nil && allOn && w.target == nil:
		return nil, err
	case err != nil:
		w.Say(err.Error()) // all of its hosts may be switched off, by this very run
	}
	if err := cmp.Or(context.Cause(ctx), w.Failpoint.At("recover.power")); err != nil {
		return nil, err
	}
	restored = w.power(context.WithoutCancel(ctx), dark) // a stop must not leave a node off that is about to be switched on
	if err := w.Failpoint.At("recover.powered"); err != nil {
		return nil, err
	}
	on := slices.DeleteFunc(dark, func(d bmc.Dark) bool { return restored[d.Node.ID] != nil })
	silent, err := w.await(ctx, slices.Concat(on, back))
	for _, d := range on {
		restored[d.Node.ID] = silent[d.Node.ID]
	}
	if err == nil && w.target == nil && len(dark) == 0 {
		err = errors.Join(slices.Collect(maps.Values(silent))...)
	}
	return restored, err
}

// power powers on the dark nodes.
func (w *Way) power(ctx context.Context, dark []bmc.Dark) map[string]error {
	if len(dark) == 0 {
		return nil
	}
	w.Say("powering on " + nodeNames(dark))
	if soft := slices.DeleteFunc(slices.Clone(dark), func(d bmc.Dark) bool { return !d.Soft }); len(soft) > 0 {
		w.Say(nodeNames(soft) + " may still be shutting down, and is watched for some minutes if it has power")
	}
	restored := bmc.Restore(ctx, w.Config, dark, w.Patience.BMCs)
	for _, d := range dark {
		if err := restored[d.Node.ID]; err != nil {
			w.Say(err.Error())
		}
	}
	return restored
}

// await waits until the nodes, which have power, answer, and enters the target as soon as it answers. It returns why others do not answer,
// by id; its error ends the cleaning.
func (w *Way) await(ctx context.Context, on []bmc.Dark) (missing map[string]error, err error) {
	if len(on) == 0 {
		return nil, context.Cause(ctx)
	}
	most, began := cmp.Or(w.Patience.Answer, answerMax), time.Now()
	silent := make([]error, len(on))
	for told := false; ; told = true {
		err := w.enter(ctx, false)
		if barred(err) {
			return nil, err
		}
		w.ask(ctx, on, silent, err)
		if errors.Join(silent...) == nil {
			return nil, w.entered(ctx, err)
		}
		if !told {
			w.Say(fmt.Sprintf("power is on; at most %v for %s to answer", most, nodeNames(on)))
		}
		if ctx.Err() != nil || time.Since(began) > most || wait.For(ctx, answerPoll) != nil {
			break
		}
	}
	missing = map[string]error{}
	for i, d := range on {
		if silent[i] != nil {
			within := fmt.Sprintf("in %v", most)
			if ctx.Err() != nil {
				within = "before the cleaning was stopped"
			}
			missing[d.Node.ID] = fmt.Errorf("%s has power, and did not answer %s: %w", nodeNames(on[i:i+1]), within, silent[i])
			w.Say(missing[d.Node.ID].Error())
		}
	}
	return missing, context.Cause(ctx)
}

// entered takes the leases of the hosts that answer now; failed is why the target could not be entered while they still booted.
func (w *Way) entered(ctx context.Context, failed error) error {
	again := w.Lease.Renew
	if failed != nil {
		again = func(ctx context.Context) error { return w.enter(ctx, false) }
	}
	err := again(ctx)
	if err != nil && !barred(err) {
		w.Say(err.Error())
		return context.Cause(ctx)
	}
	return err
}

// ask notes in silent why nodes do not answer; failed is why the target could not be entered.
func (w *Way) ask(ctx context.Context, nodes []bmc.Dark, silent []error, failed error) {
	hosts, ok := w.target.(target.HostChecker)
	var all sync.WaitGroup
	for i, d := range nodes {
		silent[i] = nil
		switch {
		case w.target == nil:
			silent[i] = failed
		case ok:
			all.Go(func() {
				bounded, cancel := context.WithTimeout(ctx, answerTry)
				defer cancel()
				silent[i] = hosts.HostUp(bounded, d.Node.ID)
			})
		}
	}
	all.Wait()
}

func nodeNames(nodes []bmc.Dark) string {
	var names []string
	for _, d := range nodes {
		names = append(names, cmp.Or(d.Node.Name, d.Node.ID))
	}
	if len(names) == 1 {
		return fmt.Sprintf("node %q", names[0])
	}
	return "nodes " + strings.Join(names, ", ")
}
