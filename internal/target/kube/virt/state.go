package virt

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// watched are the objects of KubeVirt, and what is noted of their ends and moves.
type watched struct {
	site       Site
	machines   *api.Mirror[machine]
	instances  *api.Mirror[instance]
	migrations *api.Mirror[migration]

	mu      sync.Mutex
	ends    map[string]ending  // how instances ended that are gone, by VM
	own     map[types.UID]bool // instances that this program stopped
	moving  map[string]bool    // VMs that this program migrates
	watcher func(api.Change[instance])
}

func newWatched(site Site) *watched {
	w := &watched{
		site:       site,
		machines:   api.NewMirror[machine](site.Client, api.Machines, object.Ours),
		instances:  api.NewMirror[instance](site.Client, api.Instances, object.Ours),
		migrations: api.NewMirror[migration](site.Client, api.Migrations, object.Ours),
		ends:       map[string]ending{}, own: map[types.UID]bool{}, moving: map[string]bool{},
	}
	w.instances.Listen(w.heard)
	return w
}

// Wait waits for the end of all watches, after the client was closed.
func (w *watched) Wait() {
	w.machines.Wait()
	w.instances.Wait()
	w.migrations.Wait()
}

// ending is how an instance ended.
type ending struct {
	reason string
	at     time.Time
}

// State is the power of a VM.
type State struct {
	On     bool
	Node   string // where it is or was; "": nowhere yet
	Reason string // why it ended, "": it was not started, or is on
	At     time.Time
}

// stateOf reads an instance; nil: there is none.
func stateOf(o *instance) State {
	if o == nil {
		return State{}
	}
	s := State{On: true, Node: o.Status.Node}
	if final(o) || o.DeletionTimestamp != nil {
		e := endingOf(o)
		s.On, s.Reason, s.At = false, e.reason, e.at
	}
	return s
}

func final(o *instance) bool {
	return o.Status.Phase == phaseSucceeded || o.Status.Phase == phaseFailed
}

// endingOf says why an instance ended, or will, in the cluster's words.
func endingOf(o *instance) ending {
	e := ending{reason: "its instance was deleted"}
	if final(o) {
		e.reason = "KubeVirt calls its instance " + o.Status.Phase
		for _, c := range o.Status.Changes {
			if c.Phase == o.Status.Phase {
				e.at = c.At.Time
			}
		}
	}
	if o.Status.Reason != "" {
		e.reason += ": " + api.Words(o.Status.Reason)
	}
	if c := find(o.Status.Conditions, conditionReady); c != nil && c.Status == "False" && c.Message != "" {
		e.reason += fmt.Sprintf(": %s: %s", c.Reason, api.Words(c.Message))
	}
	return e
}

// heard takes notes of instances that end. It is called by the mirror.
func (w *watched) heard(c api.Change[instance]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := c.Now
	if last == nil {
		last = c.Before
	}
	if id := last.Object.Labels[object.LabelVM]; c.Now == nil || !stateOf(&last.Object).On {
		e := endingOf(&last.Object)
		if e.at.IsZero() {
			e.at = time.Now()
		}
		if _, known := w.ends[id]; !known {
			w.ends[id] = e
		}
	} else {
		delete(w.ends, id)
	}
	own := w.own[last.Object.UID]
	if c.Now == nil {
		delete(w.own, last.Object.UID)
	}
	if w.watcher != nil && !own {
		w.watcher(c)
	}
}

// States returns the power of all VMs with a mark that have instances, by id; "": of all.
func (w *watched) States(ctx context.Context, mark string) (map[string]State, error) {
	all, err := w.instances.All(ctx)
	if err != nil {
		return nil, err
	}
	by := map[string]State{}
	for i := range all {
		o := &all[i].Object
		if mark == "" || object.MarkOf(o) == mark {
			s := stateOf(o)
			if s.On && w.site.Off(ctx, s.Node) {
				s.On = false // the cluster notices later
			}
			by[o.Labels[object.LabelVM]] = s
		}
	}
	return by, nil
}

// Now is the power of a VM, and how its last instance ended.
func (w *watched) Now(ctx context.Context, id string) (State, error) {
	if err := w.instances.Start(ctx); err != nil {
		return State{}, err
	}
	if one, ok := w.instances.Get(id); ok {
		if s := stateOf(&one.Object); s.On {
			return s, nil
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.ends[id]
	return State{Reason: e.reason, At: e.at}, nil
}

// Address is that of a VM in the pod network, "" as long as it has none.
func (w *watched) Address(ctx context.Context, id string) (string, error) {
	if err := w.instances.Start(ctx); err != nil {
		return "", err
	}
	one, _ := w.instances.Get(id)
	for _, l := range one.Object.Status.Interfaces {
		if l.Name == networkName && l.Address != "" {
			return l.Address, nil
		}
	}
	return "", nil
}

// Tunnel connects to a port of a VM through the API server.
func (w *watched) Tunnel(ctx context.Context, id string, port int) (net.Conn, error) {
	return w.site.Client.Stream(ctx, fmt.Sprintf("%s/namespaces/%s/virtualmachineinstances/%s/portforward/%d", subresources, w.site.Client.Namespace, id, port))
}

// current returns the instance of a VM, nil if there is none. One of that name with another mark is foreign.
func (w *watched) current(ctx context.Context, rec object.Record) (*api.Seen[instance], error) {
	one, ok, err := w.instances.Find(ctx, rec.VM.ID)
	if err != nil || !ok {
		return nil, err
	}
	if object.MarkOf(&one.Object) != rec.Mark {
		return nil, target.Foreign(fmt.Sprintf("instance %q", rec.VM.ID))
	}
	return &one, nil
}

// status is KubeVirt's own word for the state of a VM.
func (w *watched) status(id string) string {
	one, _ := w.machines.Get(id)
	if one.Object.Status == nil {
		return ""
	}
	return one.Object.Status.Printable
}

// stopping notes that this program ends an instance.
func (w *watched) stopping(one *api.Seen[instance]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.own[one.Object.UID] = true
}

// move notes that this program moves a VM.
func (w *watched) move(id string, moving bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if moving {
		w.moving[id] = true
	} else {
		delete(w.moving, id)
	}
}
