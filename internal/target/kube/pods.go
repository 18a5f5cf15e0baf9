package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/events"
	"github.com/braggdev/bragg/internal/target/kube/keys"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/trust"
)

// pods run VMs: a VM has power while its pod exists and has not ended.
type pods struct {
	cluster   *cluster
	settings  settings
	limits    limits
	authority *trust.Authority // nil: the target was opened for reading or cleaning up
	mirror    *api.Mirror[pod]
	keys      *keys.Keeper

	mu      sync.Mutex
	notes   map[string]ending // how pods ended that are gone, by VM
	deleted map[string]bool   // pods that this program deleted, by UID
	watcher func(api.Change[pod])
}

func newPods(c *cluster, s settings, client *api.Client, authority *trust.Authority) *pods {
	p := &pods{
		cluster: c, settings: s, limits: limitsOf(s.patience), authority: authority, keys: keys.NewKeeper(client),
		mirror: api.NewMirror[pod](client, api.Pods, object.Ours), notes: map[string]ending{}, deleted: map[string]bool{},
	}
	p.mirror.Listen(p.heard)
	return p
}

// limits are how long pods may take.
type limits struct {
	start         time.Duration // until the container runs
	unschedulable time.Duration // how long the scheduler may find no node
	image         time.Duration // how long pulling the image may fail
	stop          time.Duration
	look          time.Duration // how often the time is compared with these
}

// limitsOf are the limits where the cluster may take so long for one thing: what rarely passes by itself has less time.
func limitsOf(patience time.Duration) limits {
	return limits{
		start: patience, unschedulable: min(patience, unscheduledMax), image: min(patience, pullMax), stop: max(patience/5, stopLeast), look: min(patience/10, lookMax),
	}
}

const (
	unscheduledMax = time.Minute
	pullMax        = 30 * time.Second
	stopLeast      = 30 * time.Second
	lookMax        = 5 * time.Second
)

// pod is what this program reads of a pod.
type pod = corev1.Pod

// ending is how a pod ended.
type ending struct {
	reason string
	at     time.Time
}

// state is the power of a VM.
type state struct {
	power target.PowerState
	node  string // where it is or was; "": nowhere yet
	ended ending // with PowerOff, if there was a pod
}

// stateOf reads a pod; nil: there is none.
func stateOf(p *pod) state {
	if p == nil {
		return state{power: target.PowerOff}
	}
	s := state{power: target.PowerOn, node: p.Spec.NodeName}
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded || p.DeletionTimestamp != nil {
		s.power, s.ended = target.PowerOff, endingOf(p)
	}
	return s
}

// endingOf says why a pod ended, or will, in the cluster's words.
func endingOf(p *pod) ending {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return ending{fmt.Sprintf("the cluster removed its pod: %s: %s", c.Reason, api.Words(c.Message)), c.LastTransitionTime.Time}
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && c.Name == object.AgentContainer {
			return ending{fmt.Sprintf("its container ended: %s, exit code %d %s", t.Reason, t.ExitCode, api.Words(t.Message)), t.FinishedAt.Time}
		}
	}
	switch {
	case p.Status.Reason != "":
		return ending{fmt.Sprintf("its pod ended: %s: %s", p.Status.Reason, api.Words(p.Status.Message)), time.Time{}}
	case p.DeletionTimestamp != nil:
		return ending{"its pod was deleted", time.Time{}}
	}
	return ending{"its pod ended", time.Time{}}
}

// heard takes notes of pods that end. It is called by the mirror.
func (p *pods) heard(c api.Change[pod]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := c.Now
	if last == nil {
		last = c.Before
	}
	if id := last.Object.Labels[object.LabelVM]; c.Now == nil || stateOf(&last.Object).power == target.PowerOff {
		e := endingOf(&last.Object)
		if e.at.IsZero() {
			e.at = time.Now()
		}
		if _, known := p.notes[id]; !known {
			p.notes[id] = e
		}
	} else {
		delete(p.notes, id)
	}
	own := p.deleted[last.UID]
	if c.Now == nil {
		delete(p.deleted, last.UID)
	}
	if p.watcher != nil && !own {
		p.watcher(c)
	}
}

func (p *pods) note(id string) (ending, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.notes[id]
	return e, ok
}

// states returns the power of all VMs with a mark that have pods, by id.
func (p *pods) states(ctx context.Context, mark string) (map[string]state, error) {
	all, err := p.mirror.All(ctx)
	if err != nil {
		return nil, err
	}
	by := map[string]state{}
	for i := range all {
		if one := &all[i].Object; mark == "" || object.MarkOf(one) == mark {
			s := stateOf(one)
			if s.power == target.PowerOn && p.cluster.power.off(ctx, s.node) {
				s.power = target.PowerOff // the cluster notices later
			}
			by[one.Labels[object.LabelVM]] = s
		}
	}
	return by, nil
}

// current returns the pod of a VM, nil if there is none. A pod of that name with another mark is foreign.
func (p *pods) current(ctx context.Context, r object.Record) (*api.Seen[pod], error) {
	one, ok, err := p.mirror.Find(ctx, r.VM.ID)
	if err != nil || !ok {
		return nil, err
	}
	if object.MarkOf(&one.Object) != r.Mark {
		return nil, target.Foreign(fmt.Sprintf("pod %q", r.VM.ID))
	}
	return &one, nil
}

// now is the power of a VM, and how its last pod ended.
func (p *pods) now(ctx context.Context, id string) (state, error) {
	if err := p.mirror.Start(ctx); err != nil {
		return state{}, err
	}
	if one, ok := p.mirror.Get(id); ok {
		if s := stateOf(&one.Object); s.power == target.PowerOn {
			return s, nil
		}
	}
	s := state{power: target.PowerOff}
	if ended, known := p.note(id); known {
		s.ended = ended
	}
	return s, nil
}

func (p *pods) address(ctx context.Context, id string) (string, error) {
	if err := p.mirror.Start(ctx); err != nil {
		return "", err
	}
	one, _ := p.mirror.Get(id)
	return one.Object.Status.PodIP, nil
}

func (p *pods) tunnel(ctx context.Context, id string, port int) (net.Conn, error) {
	return p.cluster.client.Tunnel(ctx, id, port)
}

func (p *pods) remove(ctx context.Context, r object.Record) error { return p.stop(ctx, r) }

// start makes the pod of a VM and waits until its container runs. A pod that does not get that far is deleted again.
func (p *pods) start(ctx context.Context, r object.Record, tag object.Owner) error {
	if p.cluster.power.off(ctx, r.VM.NodeID) {
		return fmt.Errorf("node %q has no power", r.VM.NodeID)
	}
	one, err := p.current(ctx, r)
	if err != nil {
		return err
	}
	if one != nil && stateOf(&one.Object).power == target.PowerOff {
		if err := p.stop(ctx, r); err != nil {
			return err
		}
		one = nil
	}
	if one == nil {
		target.Powerless(ctx, r.VM.Name, time.Now())
		if err := p.plant(ctx, r, tag); err != nil {
			return err
		}
		if err := p.create(ctx, r, tag); err != nil {
			return err
		}
	}
	if err := p.running(ctx, r); err != nil {
		return errors.Join(err, p.stop(context.WithoutCancel(ctx), r))
	}
	return nil
}

func (p *pods) create(ctx context.Context, r object.Record, tag object.Owner) error {
	image := p.image(r.Template)
	own := func(o *pod) bool {
		return object.MarkOf(o) == tag.Mark && o.Labels[object.LabelVM] == r.VM.ID && o.DeletionTimestamp == nil
	}
	_, err := api.Create(ctx, p.cluster.client, api.Pods, r.Pod(tag, p.settings.pods, image), own)
	if api.Exists(err) {
		return target.Foreign(fmt.Sprintf("pod %q", r.VM.ID))
	}
	return err
}

// image is that of the agent.
func (p *pods) image(template string) string {
	if image := p.cluster.config.Templates[template]; image != "" {
		return image
	}
	return p.settings.image
}

// plant makes the Secret with the identity of the agent.
func (p *pods) plant(ctx context.Context, r object.Record, tag object.Owner) error {
	return p.keys.Plant(ctx, r, tag, func() (*corev1.Secret, error) {
		if p.authority == nil {
			return nil, errors.New("this program has no identity that agents accept")
		}
		identity, err := p.authority.Agent(r.VM.Name)
		if err != nil {
			return nil, err
		}
		return r.Secret(tag, identity)
	})
}

func (p *pods) removeSecret(ctx context.Context, r object.Record) error { return p.keys.Remove(ctx, r) }

// running waits until the container of a pod runs.
func (p *pods) running(ctx context.Context, r object.Record) error {
	began := time.Now()
	for {
		var last *pod
		slice, cancel := context.WithTimeout(ctx, p.limits.look)
		err := p.mirror.Await(slice, r.VM.ID, func(o *api.Seen[pod]) (bool, error) {
			if o == nil {
				if last == nil {
					return false, nil // it was created and not seen yet
				}
				return false, errors.New("its pod was deleted while it started")
			}
			last = &o.Object
			if started(last) {
				return true, nil
			}
			return false, hopeless(last)
		})
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case api.Refused(err): // of the watch: the pod is not known
			return err
		case !errors.Is(err, context.DeadlineExceeded):
			return p.explain(ctx, r, last, err.Error())
		case last == nil && time.Since(began) < p.limits.start:
			continue
		}
		if why := p.late(last, time.Since(began)); why != "" {
			return p.explain(ctx, r, last, why)
		}
	}
}

func started(o *pod) bool {
	if o.DeletionTimestamp != nil || o.Status.Phase != corev1.PodRunning || o.Status.PodIP == "" {
		return false
	}
	for _, c := range o.Status.ContainerStatuses {
		if c.Name == object.AgentContainer && c.State.Running != nil {
			return true
		}
	}
	return false
}

// hopelessReasons of a waiting container do not pass by themselves.
var hopelessReasons = map[string]bool{"ErrImageNeverPull": true, "InvalidImageName": true, "CreateContainerError": true, "RunContainerError": true}

// pullReasons are those of an image that cannot be pulled, which is tried again.
var pullReasons = map[string]bool{"ErrImagePull": true, "ImagePullBackOff": true, "ImageInspectError": true, "RegistryUnavailable": true}

// hopeless returns why a pod will not run.
func hopeless(o *pod) error {
	if stateOf(o).power == target.PowerOff {
		return errors.New(endingOf(o).reason)
	}
	if w := waiting(o); w != nil && hopelessReasons[w.Reason] {
		return fmt.Errorf("%s: %s", w.Reason, api.Words(w.Message))
	}
	return nil
}

func waiting(o *pod) *corev1.ContainerStateWaiting {
	for _, c := range o.Status.ContainerStatuses {
		if c.Name == object.AgentContainer {
			return c.State.Waiting
		}
	}
	return nil
}

func unscheduled(o *pod) *corev1.PodCondition {
	for i, c := range o.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return &o.Status.Conditions[i]
		}
	}
	return nil
}

// late returns why a pod that does not run yet has had its time; "": it has not. o may be nil.
func (p *pods) late(o *pod, after time.Duration) string {
	if o == nil {
		return "the pod was created and is not seen"
	}
	if c := unscheduled(o); c != nil && after >= p.limits.unschedulable {
		return fmt.Sprintf("%s: %s", c.Reason, api.Words(c.Message))
	}
	w := waiting(o)
	if w != nil && pullReasons[w.Reason] && after >= p.limits.image {
		return fmt.Sprintf("%s: %s", w.Reason, api.Words(w.Message))
	}
	if after < p.limits.start {
		return ""
	}
	if w != nil {
		return fmt.Sprintf("%s: %s", w.Reason, api.Words(w.Message))
	}
	return fmt.Sprintf("its pod is %s", o.Status.Phase)
}

// explain adds the events of the pod to why it does not run.
func (p *pods) explain(ctx context.Context, r object.Record, o *pod, why string) error {
	e := &diag.Error{Code: "kube-pod", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("pod %q does not run: %s", r.VM.ID, why)}
	e.Hint = fmt.Sprintf("kubectl -n %s describe pod shows more while it exists", p.cluster.client.Namespace)
	if o == nil {
		return e
	}
	if said := events.Of(ctx, p.cluster.client, string(o.UID)).Beyond(why); said != "" {
		e.Message += "; " + said
	}
	w := waiting(o)
	switch {
	case unscheduled(o) != nil:
		e.Code, e.Hint = "kube-unschedulable", "the node of the VM must have room: smaller VMs, or reserve: off in the options of the target file"
	case w != nil && (pullReasons[w.Reason] || hopelessReasons[w.Reason]):
		e.Code, e.Hint = "kube-image", "options image, image_pull_secret and image_pull_policy of the target file select the image"
	}
	return e
}

// stop deletes the pod of a VM and waits until it is gone: then its processes are.
func (p *pods) stop(ctx context.Context, r object.Record) error {
	one, err := p.current(ctx, r)
	if err != nil || one == nil {
		return err
	}
	grace := int64(object.GraceSeconds)
	if p.cluster.power.dead(ctx, one.Object.Spec.NodeName) {
		grace = 0 // no kubelet confirms that it has stopped
	}
	p.mu.Lock()
	p.deleted[one.UID] = true
	p.mu.Unlock()
	if err := p.cluster.client.Delete(ctx, api.Pods, one.Name, one.Object.UID, grace); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, p.limits.stop)
	defer cancel()
	err = p.mirror.Await(bounded, one.Name, func(o *api.Seen[pod]) (bool, error) { return o == nil || o.UID != one.UID, nil })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return &diag.Error{
			Code: "kube-pod-stays", Exit: diag.ExitUnavailable, Err: err,
			Message: fmt.Sprintf("pod %q was deleted and is still there after %s", one.Name, p.limits.stop),
			Hint:    fmt.Sprintf("the kubelet of node %q may not answer: kubectl get nodes", one.Object.Spec.NodeName),
		}
	}
	return err
}
