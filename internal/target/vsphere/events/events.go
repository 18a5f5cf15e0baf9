// Package events follows what a vCenter reports of one cluster: restarts by HA, moves by DRS, hosts that are lost, alarms.
//
//	Watch ──▶ every few seconds: events since the last one ──▶ those of our hosts and VMs ──▶ target.PlatformEvent
//
// It polls with QueryEvents and keeps nothing in the vCenter: a collector of events ends with its session.
package events

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/wait"
)

const (
	pollPause = 3 * time.Second
	// failedPauseMax is between two attempts while the vCenter does not answer.
	failedPauseMax = time.Minute
	// overlap is how far each query goes back: events get their time before they can be read.
	overlap      = 30 * time.Second
	textRunesMax = 300
	// seenMax is how many keys of events are known before those are forgotten that are older than a query.
	seenMax = 10_000
)

// Source knows what the events are of.
type Source interface {
	// VMName returns the name in the run of a VM with the tag; "" for any other.
	VMName(ctx context.Context, vm types.ManagedObjectReference) string
	// Host reports whether a host is one of the cluster.
	Host(ctx context.Context, host types.ManagedObjectReference) bool
}

// Watch calls see for events of the cluster from now on, until ctx ends.
func Watch(ctx context.Context, vc *vcenter.Client, cluster types.ManagedObjectReference, s Source, see func(target.PlatformEvent)) error {
	w := &watcher{vc: vc, cluster: cluster, source: s, see: see, own: vc.IsUser, seen: map[int32]bool{}}
	began, here, err := vc.Now(ctx)
	if err != nil {
		return unless(ctx, err)
	}
	w.began, w.since, w.offset = began, began, here.Sub(began)
	pause := pollPause
	for {
		err := w.poll(ctx)
		var refused *diag.Error
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused) && refused.Code == "vsphere-privilege", errors.Is(err, vcenter.ErrClosed):
			return err
		case err != nil:
			pause = min(2*pause, failedPauseMax)
		default:
			pause = pollPause
		}
		if wait.For(ctx, pause) != nil {
			return nil
		}
	}
}

func unless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type watcher struct {
	vc           *vcenter.Client
	cluster      types.ManagedObjectReference
	source       Source
	see          func(target.PlatformEvent)
	own          func(user string) bool
	began, since time.Time // by the vCenter's clock
	offset       time.Duration
	seen         map[int32]bool
}

func (w *watcher) poll(ctx context.Context) error {
	begin := w.since.Add(-overlap)
	if begin.Before(w.began) {
		begin = w.began
	}
	found, err := event.NewManager(w.vc.Client).QueryEvents(ctx, types.EventFilterSpec{
		Entity: &types.EventFilterSpecByEntity{Entity: w.cluster, Recursion: types.EventFilterSpecRecursionOptionAll},
		Time:   &types.EventFilterSpecByTime{BeginTime: &begin},
	})
	if err != nil {
		return w.vc.Explain("read the events of the cluster", err)
	}
	w.take(ctx, found, time.Now().Add(-w.offset))
	return nil
}

// take reports those of the events that are new. now is that of the vCenter: an event of a host whose clock is ahead must not move the begin of
// later queries there.
func (w *watcher) take(ctx context.Context, found []types.BaseEvent, now time.Time) {
	slices.SortFunc(found, func(a, b types.BaseEvent) int { return cmp.Compare(a.GetEvent().Key, b.GetEvent().Key) })
	w.forget(found)
	for _, one := range found {
		e := one.GetEvent()
		if w.seen[e.Key] {
			continue
		}
		w.seen[e.Key] = true
		if e.CreatedTime.After(w.since) && !e.CreatedTime.After(now) {
			w.since = e.CreatedTime
		}
		if p, ok := w.convert(ctx, one); ok {
			w.see(p)
		}
	}
}

// forget drops the keys of events that no later query returns: those that this one does not.
func (w *watcher) forget(found []types.BaseEvent) {
	if len(w.seen) <= seenMax {
		return
	}
	kept := map[int32]bool{}
	for _, one := range found {
		if key := one.GetEvent().Key; w.seen[key] {
			kept[key] = true
		}
	}
	w.seen = kept
}

// convert makes an event of the vCenter one of the platform; false: it concerns neither our VMs nor our hosts, or this
// program caused it.
func (w *watcher) convert(ctx context.Context, one types.BaseEvent) (target.PlatformEvent, bool) {
	e := one.GetEvent()
	kind, from := kindOf(one)
	if kind == "" {
		return target.PlatformEvent{}, false
	}
	p := target.PlatformEvent{At: e.CreatedTime.Add(w.offset), Kind: kind, Text: textOf(one, "")}
	vm, host := subject(one)
	if host != nil {
		p.NodeID = host.Value
	}
	if from != nil {
		p.From = from.Host.Value
	}
	switch kind {
	case target.PlatformRestarted, target.PlatformMoved, target.PlatformStopped:
		if vm == nil || e.UserName != "" && w.own(e.UserName) {
			return p, false // the run's own operations are events of the run already
		}
		p.VM = w.source.VMName(ctx, *vm)
		p.Text = textOf(one, p.VM)
		return p, p.VM != ""
	case target.PlatformNodeDown, target.PlatformNodeUp:
		if from != nil {
			p.NodeID, p.From = from.Host.Value, ""
		}
		return p, p.NodeID != "" && w.source.Host(ctx, types.ManagedObjectReference{Type: "HostSystem", Value: p.NodeID})
	}
	if vm != nil {
		p.VM = w.source.VMName(ctx, *vm)
		p.Text = textOf(one, p.VM)
		return p, p.VM != "" && (e.UserName == "" || !w.own(e.UserName))
	}
	return p, true
}

// textOf is the vCenter's own text, with the name that a VM has in the run: the one in the inventory also says whose it is, and is longer
// than what happened.
func textOf(one types.BaseEvent, vm string) string {
	e := one.GetEvent()
	text := e.FullFormattedMessage
	if vm != "" && e.Vm != nil && e.Vm.Name != "" {
		text = strings.ReplaceAll(text, e.Vm.Name, vm)
	}
	if text == "" {
		return nameOf(one)
	}
	return textio.Clip(textio.Line(text), textRunesMax)
}
