package virt

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// Report calls put with VMs of a mark that end or move without this program, until stop is called.
func (w *watched) Report(ctx context.Context, mark string, put func(target.PlatformEvent)) (stop func(), err error) {
	if err := w.instances.Start(ctx); err != nil {
		return nil, err
	}
	var told sync.Map // ends that were reported, by UID
	w.watch(func(c api.Change[instance]) {
		if e, uid := w.event(c, mark); uid != "" {
			if e.Kind == target.PlatformStopped {
				if _, twice := told.LoadOrStore(uid, true); twice {
					return
				}
			}
			put(e)
		}
	})
	return func() { w.watch(nil) }, nil
}

func (w *watched) watch(heard func(api.Change[instance])) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watcher = heard
}

// event reads the end or the move of an instance; an empty uid: it is neither. The caller holds the lock.
func (w *watched) event(c api.Change[instance], mark string) (e target.PlatformEvent, uid string) {
	last := c.Now
	if last == nil {
		last = c.Before
	}
	o := &last.Object
	if object.MarkOf(o) != mark {
		return e, ""
	}
	e = target.PlatformEvent{At: time.Now(), VM: o.Annotations[object.NameNote], NodeID: o.Status.Node}
	switch {
	case c.Now == nil || !stateOf(o).On:
		e.Kind, e.Text = target.PlatformStopped, endingOf(o).reason
		return e, last.UID
	case c.Before != nil && c.Before.UID == c.Now.UID && c.Before.Object.Status.Node != "" && c.Before.Object.Status.Node != o.Status.Node && !w.moving[last.Name]:
		e.Kind, e.Text = target.PlatformMoved, fmt.Sprintf("KubeVirt moved it from node %s to %s", c.Before.Object.Status.Node, o.Status.Node)
		return e, last.UID
	}
	return e, ""
}
