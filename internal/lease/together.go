package lease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/wait"
)

// Place is a machine whose lease is taken over a connection. Its methods may be called concurrently.
type Place interface {
	// Name is what the target calls it.
	Name() string
	// Identity tells the machine from all others. It must not change while a controller takes leases.
	Identity(ctx context.Context) (string, error)
	// Take takes the lease for a holder that has not got it, and renews it for one that has. It never takes it from
	// another, but from the one that the order says is gone. An error means that the machine did not answer.
	Take(ctx context.Context, o Order) (Answer, error)
	// Drop gives it back. Where that id has it no more, it does nothing.
	Drop(ctx context.Context, id string) error
}

// Group is the lease of several machines, renewed until its release.
type Group struct {
	holder Holder
	places []Place // in the order in which they are taken; those that did not answer come last
	lost   chan Holder
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu    sync.Mutex
	fence uint64
}

// Together takes the leases of all places for one holder, or of none. It takes them in the order of their identities:
// of two controllers that want the same machines, the one that gets the first gets all. A machine that does not answer
// may be off; its lease is taken as soon as it answers. At least one must answer. If another holder has one of them,
// the error is a *HeldError.
func Together(ctx context.Context, h Holder, places []Place) (*Group, error) {
	return together(ctx, h, places, RenewPeriod)
}

func together(ctx context.Context, h Holder, places []Place, period time.Duration) (*Group, error) {
	g := &Group{holder: h, fence: h.Fence, lost: make(chan Holder, len(places))}
	answering, silent, missing := ordered(ctx, places)
	g.places = slices.Concat(answering, silent)
	holding.add(h.ID)
	taken := 0
	for _, p := range answering {
		a, err := g.take(ctx, p)
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case err != nil:
			missing = errors.Join(missing, err)
			continue
		case a.Other == nil:
			taken++
			continue
		default:
			err = &HeldError{By: *a.Other, Where: p.Name()}
		}
		g.drop(context.WithoutCancel(ctx), answering)
		return nil, err
	}
	if taken == 0 {
		g.drop(context.WithoutCancel(ctx), answering)
		return nil, missing
	}
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	g.stop = stop
	for _, p := range g.places {
		g.work.Go(func() { g.renew(beside, p, period) })
	}
	return g, nil
}

// ordered sorts places by the identities of their machines, each machine once. Those that do not say which they are come
// apart, with why.
func ordered(ctx context.Context, places []Place) (answering, silent []Place, err error) {
	type known struct {
		identity string
		place    Place
		err      error
	}
	all := make([]known, len(places))
	var work sync.WaitGroup
	for i, p := range places {
		work.Go(func() {
			bounded, cancel := context.WithTimeout(ctx, callMax)
			defer cancel()
			all[i].place = p
			all[i].identity, all[i].err = p.Identity(bounded)
		})
	}
	work.Wait()
	slices.SortStableFunc(all, func(a, b known) int { return strings.Compare(a.identity, b.identity) })
	for i, k := range all {
		switch {
		case k.err != nil:
			silent, err = append(silent, k.place), errors.Join(err, k.err)
		case i == 0 || all[i-1].err != nil || all[i-1].identity != k.identity:
			answering = append(answering, k.place)
		}
	}
	return answering, silent, err
}

// take takes the lease of one place, or renews it. One whose holder is gone is replaced.
func (g *Group) take(ctx context.Context, p Place) (Answer, error) {
	a, err := g.call(ctx, p, "")
	if err == nil && a.Other != nil && !a.Other.Renewed.IsZero() && time.Since(a.Other.Renewed) > Life+skewMax && !a.Other.gone() {
		return g.watch(ctx, p, a)
	}
	if err == nil && a.Other != nil && a.Other.gone() {
		return g.call(ctx, p, a.Other.ID)
	}
	return a, err
}

func (g *Group) call(ctx context.Context, p Place, over string) (Answer, error) {
	bounded, cancel := context.WithTimeout(ctx, callMax)
	defer cancel()
	a, err := p.Take(bounded, Order{Holder: g.holder, Over: over})
	if err == nil && a.Other == nil {
		g.mu.Lock()
		g.fence = max(g.fence, a.Fence)
		g.mu.Unlock()
	}
	return a, err
}

// watch looks for a sign of life of a holder whose last one is old by our clock, which may be wrong.
func (g *Group) watch(ctx context.Context, p Place, first Answer) (Answer, error) {
	for until := time.Now().Add(watchLength); time.Now().Before(until); {
		if err := wait.For(ctx, RenewPeriod/4); err != nil {
			return Answer{}, err
		}
		a, err := g.call(ctx, p, "")
		if err != nil || a.Other == nil || a.Other.ID != first.Other.ID || !a.Other.Renewed.Equal(first.Other.Renewed) {
			return a, err
		}
	}
	return g.call(ctx, p, first.Other.ID)
}

// renew renews the lease of one place until the group is given back, or another has it: then our network was cut for too long.
func (g *Group) renew(ctx context.Context, p Place, period time.Duration) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// An error does not lose the lease: the machine may be switched off, and is polled again.
		if a, err := g.take(ctx, p); err == nil && a.Other != nil {
			g.lost <- *a.Other
			return
		}
	}
}

// Renew renews the lease of all places now, and takes it where the machine did not answer before: its holder may be dead since long. If
// another holder has one of them, the error is a *HeldError.
func (g *Group) Renew(ctx context.Context) error {
	errs := make([]error, len(g.places))
	var all sync.WaitGroup
	for i, p := range g.places {
		all.Go(func() {
			// An error means that the machine does not answer: its lease is taken when it does.
			if a, err := g.take(ctx, p); err == nil && a.Other != nil {
				errs[i] = &HeldError{By: *a.Other, Where: p.Name()}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Fence is the number of the lease, higher than all earlier ones.
func (g *Group) Fence() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fence
}

// Lost reports the new holder of a machine whose lease was lost.
func (g *Group) Lost() <-chan Holder { return g.lost }

// Unlock releases the lease. On a machine that cannot be reached it expires by itself.
func (g *Group) Unlock() error {
	g.stop()
	g.work.Wait()
	g.drop(context.Background(), g.places)
	return nil
}

// drop releases all leases that may have been taken, the first one last, so that no other controller gets a subset
// meanwhile.
func (g *Group) drop(ctx context.Context, places []Place) {
	one := func(p Place) {
		bounded, cancel := context.WithTimeout(ctx, callMax)
		defer cancel()
		_ = p.Drop(bounded, g.holder.ID)
	}
	var others sync.WaitGroup
	for _, p := range places[min(1, len(places)):] {
		others.Go(func() { one(p) }) // hosts that are off keep each call waiting
	}
	others.Wait()
	if len(places) > 0 {
		one(places[0])
	}
	holding.remove(g.holder.ID)
}
