package nutanix

import (
	"context"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
	"github.com/braggdev/bragg/internal/wait"
)

// watchEvery is how often the cluster is looked at: an event is reported up to that much late.
const watchEvery = 10 * time.Second

// watcher reports what the cluster does by itself. It compares what Prism lists, two requests per look: Prism's own events and alerts
// come minutes late, and in other words with each version.
type watcher struct{ cluster *cluster }

// sight is what one look found.
type sight struct {
	vms   map[string]target.VM // by name
	kinds map[string][]ahv.Ref // categories of VMs, by name
	nodes map[string]string    // why a node cannot run VMs, by its id; "": it can
}

// WatchEvents calls see for changes until ctx ends. Migrations by this program are reported as moves too.
func (w *watcher) WatchEvents(ctx context.Context, tag target.Tag, see func(target.PlatformEvent)) error {
	if err := tag.Check(); err != nil {
		return err
	}
	before, err := w.look(ctx, tag)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	for wait.For(ctx, watchEvery/time.Duration(max(1, w.cluster.quicken))) == nil {
		now, err := w.look(ctx, tag)
		if err != nil {
			continue // the next look tells
		}
		for _, e := range compare(before, now, w.cluster.nameOf) {
			if e.At = time.Now(); e.Kind == target.PlatformMoved {
				e.Text += w.cluster.concerning(ctx, now.kinds[e.VM])
			}
			see(e)
		}
		before = now
	}
	return nil
}

func (w *watcher) look(ctx context.Context, tag target.Tag) (sight, error) {
	s, err := w.cluster.survey(ctx)
	if err != nil {
		return sight{}, err
	}
	nodes, err := w.cluster.fresh(ctx)
	if err != nil {
		return sight{}, err
	}
	found := sight{vms: map[string]target.VM{}, kinds: map[string][]ahv.Ref{}, nodes: map[string]string{}}
	for _, one := range s.owned(tag.Mark()) {
		found.vms[one.name()], found.kinds[one.name()] = one.vm(nodes), one.Categories
	}
	for _, n := range nodes {
		found.nodes[n.id] = n.host.Trouble()
	}
	return found, nil
}

// compare returns what happened between two looks. A VM that is on another node was restarted if its node is lost, and else moved.
func compare(before, now sight, name func(id string) string) []target.PlatformEvent {
	var events []target.PlatformEvent
	for id, why := range now.nodes {
		switch was := before.nodes[id]; {
		case why != "" && was == "":
			events = append(events, target.PlatformEvent{Kind: target.PlatformNodeDown, NodeID: id, Text: fmt.Sprintf("host %s: %s", name(id), why)})
		case why == "" && was != "":
			events = append(events, target.PlatformEvent{Kind: target.PlatformNodeUp, NodeID: id, Text: fmt.Sprintf("host %s is normal again", name(id))})
		}
	}
	for vm, is := range now.vms {
		was, ok := before.vms[vm]
		switch {
		case !ok:
		case is.Power == target.PowerOn && was.NodeID != is.NodeID && (now.nodes[was.NodeID] != "" || before.nodes[was.NodeID] != ""):
			events = append(events, target.PlatformEvent{
				Kind: target.PlatformRestarted, VM: vm, NodeID: is.NodeID, From: was.NodeID,
				Text: fmt.Sprintf("VM %s restarted on host %s after the failure of host %s", vm, name(is.NodeID), name(was.NodeID)),
			})
		case is.Power == target.PowerOn && was.Power == target.PowerOn && was.NodeID != is.NodeID:
			events = append(events, target.PlatformEvent{
				Kind: target.PlatformMoved, VM: vm, NodeID: is.NodeID, From: was.NodeID,
				Text: fmt.Sprintf("VM %s moved from host %s to host %s", vm, name(was.NodeID), name(is.NodeID)),
			})
		case is.Power == target.PowerOff && was.Power == target.PowerOn:
			events = append(events, target.PlatformEvent{
				Kind: target.PlatformStopped, VM: vm, NodeID: was.NodeID, Text: fmt.Sprintf("VM %s is off", vm),
			})
		}
	}
	return events
}

func (c *cluster) nameOf(id string) string {
	if n, err := of(c.nodes, id); err == nil {
		return n.name
	}
	return id
}
