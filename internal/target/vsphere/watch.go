package vsphere

import (
	"context"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/events"
)

// WatchEvents reports what the vCenter reports of the cluster; see target.EventWatcher. Connections to agents of VMs that
// lost their power are ended.
func (a *agents) WatchEvents(ctx context.Context, tag target.Tag, see func(target.PlatformEvent)) error {
	if err := tag.Check(); err != nil {
		return err
	}
	w := &watched{agents: a, mark: tag.Mark()}
	return events.Watch(ctx, a.site.vc, a.site.cluster.ref, w, func(e target.PlatformEvent) {
		if e.Kind == target.PlatformStopped || e.Kind == target.PlatformRestarted {
			a.HangUp(w.ids[e.VM])
		}
		if e.VM != "" && e.NodeID != "" { // HA does not report where a VM was before
			if was := w.nodes[e.VM]; e.Kind == target.PlatformRestarted && e.From == "" && was != e.NodeID {
				e.From = was
			}
			w.nodes[e.VM] = e.NodeID
		}
		see(e)
	})
}

// watched knows the VMs of one run by their objects. It is used by one goroutine.
type watched struct {
	agents *agents
	mark   string
	names  map[types.ManagedObjectReference]string
	hosts  map[types.ManagedObjectReference]bool
	ids    map[string]string // of VMs, by name
	nodes  map[string]string // where VMs were seen last, by name
}

// VMName returns the name of a VM of the run. An unknown object is looked for once: it may be of a new VM.
func (w *watched) VMName(ctx context.Context, vm types.ManagedObjectReference) string {
	if name, known := w.names[vm]; known {
		return name
	}
	w.look(ctx)
	name := w.names[vm]
	if w.names != nil {
		w.names[vm] = name
	}
	return name
}

// Host reports whether a host is one of the cluster.
func (w *watched) Host(ctx context.Context, host types.ManagedObjectReference) bool {
	if w.hosts == nil {
		w.look(ctx)
	}
	return w.hosts[host]
}

func (w *watched) look(ctx context.Context) {
	s, err := w.agents.site.survey(ctx)
	if err != nil {
		return
	}
	w.names, w.hosts, w.ids = map[types.ManagedObjectReference]string{}, map[types.ManagedObjectReference]bool{}, map[string]string{}
	if w.nodes == nil {
		w.nodes = map[string]string{}
	}
	for _, one := range s.owned(w.mark) {
		name := one.owner.Record.VM.Name
		w.names[one.ref], w.ids[name] = name, one.id
		if w.nodes[name] == "" {
			w.nodes[name] = one.owner.Record.VM.NodeID
		}
	}
	for _, h := range s.hosts {
		w.hosts[h.ref] = true
	}
}
