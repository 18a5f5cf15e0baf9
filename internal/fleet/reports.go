package fleet

import (
	"context"
	"sync"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/wait"
)

// Platforms report what they do to VMs and nodes. A report is passed on, unless it is the echo of a migration by a step of this
// run, and makes the run read the placement at once instead of at the next poll.

// Watch polls the placement until ctx ends, if the target can move VMs at all, and listens to the platform's own events.
func (f *Fleet) Watch(ctx context.Context) {
	again := make(chan struct{}, 1)
	var all sync.WaitGroup
	defer all.Wait()
	if w, ok := f.target.(target.EventWatcher); ok {
		all.Go(func() { f.listen(ctx, w, again) })
	}
	_, moves := f.target.(target.Migrator)
	if !moves && !f.plan.Target.RestartsElsewhere {
		return
	}
	all.Go(func() {
		for {
			select {
			case <-again:
				f.look(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	wait.Every(ctx, placementPeriod, func() { f.look(ctx) })
}

func (f *Fleet) listen(ctx context.Context, w target.EventWatcher, again chan<- struct{}) {
	err := w.WatchEvents(ctx, f.tag, func(e target.PlatformEvent) {
		if f.echo(e) {
			return
		}
		f.reported(e)
		if e.VM == "" {
			return
		}
		select {
		case again <- struct{}{}:
		default: // a look is due anyway
		}
	})
	if err != nil && ctx.Err() == nil {
		f.deaf(err)
	}
}

// echo reports whether the event is a move that a step of this run makes.
func (t *table) echo(e target.PlatformEvent) bool {
	if e.Kind != target.PlatformMoved || e.VM == "" {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if errand, ok := t.moves.wanted[e.VM]; ok && (e.NodeID == "" || e.NodeID == errand.node) {
		return true
	}
	for _, vm := range t.vms {
		if vm.Name == e.VM {
			return vm.NodeID == e.NodeID // it is known to be there: a step moved it
		}
	}
	return false
}
