package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// reports are what the cluster does by itself: it evicts, moves and kills VMs, and nodes come and go.
type reports struct {
	cluster *cluster
	vms     reporter
}

// reportsMax bounds how many reports wait for their reader.
const reportsMax = 1024

// WatchEvents reports VMs with the tag that end, and nodes that become ready or not. VMs that this program stops end without a report.
func (r *reports) WatchEvents(ctx context.Context, tag target.Tag, see func(target.PlatformEvent)) error {
	if err := tag.Check(); err != nil {
		return err
	}
	queue := make(chan target.PlatformEvent, reportsMax)
	put := func(e target.PlatformEvent) {
		select {
		case queue <- e:
		default: // its reader is stuck
		}
	}
	stop, err := r.vms.report(ctx, tag.Mark(), put)
	if err != nil {
		return err
	}
	defer stop()
	if err := r.cluster.hosts.Start(ctx); err == nil {
		defer r.cluster.hosts.Listen(func(c api.Change[corev1.Node]) {
			if e, ok := nodeEvent(c); ok {
				put(e)
			}
		})()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-queue:
			see(e)
		}
	}
}

// report reports pods that end, each once.
func (p *pods) report(ctx context.Context, mark string, put func(target.PlatformEvent)) (stop func(), err error) {
	if err := p.mirror.Start(ctx); err != nil {
		return nil, err
	}
	var told sync.Map // by UID
	p.watch(func(c api.Change[pod]) {
		if e, ok := podEvent(c, mark); ok {
			if _, twice := told.LoadOrStore(e.uid, true); !twice {
				put(e.PlatformEvent)
			}
		}
	})
	return func() { p.watch(nil) }, nil
}

// watch sets the listener to changes of pods; nil: none.
func (p *pods) watch(heard func(api.Change[pod])) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watcher = heard
}

// podReport is the end of one pod.
type podReport struct {
	target.PlatformEvent
	uid string
}

// podEvent reads the end of a pod of a run.
func podEvent(c api.Change[pod], mark string) (podReport, bool) {
	last := c.Now
	if last == nil {
		last = c.Before
	}
	o := &last.Object
	if object.MarkOf(o) != mark || c.Now != nil && stateOf(o).power == target.PowerOn {
		return podReport{}, false
	}
	e := endingOf(o)
	return podReport{target.PlatformEvent{
		At: time.Now(), Kind: target.PlatformStopped, VM: o.Annotations[object.NameNote], NodeID: o.Spec.NodeName, Text: e.reason,
	}, last.UID}, true
}

// nodeEvent reads a change of a node's readiness.
func nodeEvent(c api.Change[corev1.Node]) (target.PlatformEvent, bool) {
	if c.Now == nil {
		return target.PlatformEvent{
			At: time.Now(), Kind: target.PlatformNodeDown, NodeID: c.Before.Name, Text: fmt.Sprintf("node %s left the cluster", c.Before.Name),
		}, true
	}
	now, text := ready(&c.Now.Object)
	if c.Before == nil {
		return target.PlatformEvent{}, false
	}
	before, _ := ready(&c.Before.Object)
	switch {
	case before && !now:
		return target.PlatformEvent{
			At: time.Now(), Kind: target.PlatformNodeDown, NodeID: c.Now.Name, Text: fmt.Sprintf("node %s is not ready: %s", c.Now.Name, text),
		}, true
	case !before && now:
		return target.PlatformEvent{At: time.Now(), Kind: target.PlatformNodeUp, NodeID: c.Now.Name, Text: fmt.Sprintf("node %s is ready", c.Now.Name)}, true
	}
	return target.PlatformEvent{}, false
}

func ready(n *corev1.Node) (bool, string) {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue, api.Words(c.Message)
		}
	}
	return false, ""
}
