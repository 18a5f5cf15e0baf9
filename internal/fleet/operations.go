package fleet

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
)

// operations reports how long changes to VMs and nodes take, with an event at each start and each end. A nil *operations reports
// nothing.
//
// A call for many VMs is an operation, and so is the provider's work on each VM in it. Some ends are only visible by
// polling, such as an agent or a host that answers again. An answer may come long after the fact if there was no poll in
// between, so the end event includes the length of that gap.
type operations struct {
	emit      func(e interval.Event, at time.Time)
	simulated func(op interval.Operation) bool

	mu    sync.Mutex
	last  int
	vms   map[string][]*operation // open until the agent of the VM answers
	nodes map[string][]*operation // open until the system of the node answers, or the cluster is ready
}

// operation has begun and not ended.
type operation struct {
	event interval.Event
	began time.Time
	asked time.Time // the last time at which the operation was known to be incomplete
}

var capabilityOf = map[interval.Operation]target.Capability{
	interval.OperationClone: target.CapClone, interval.OperationPowerOn: target.CapVMPower, interval.OperationBoot: target.CapVMPower,
	interval.OperationSnapshot: target.CapSnapshot, interval.OperationMigrate: target.CapMigrate,
	interval.OperationNodeOff: target.CapNodePower, interval.OperationNodeShutdown: target.CapNodePower,
	interval.OperationNodeOn: target.CapNodePower, interval.OperationHostUp: target.CapNodePower,
	interval.OperationClusterReady: target.CapNodePower, interval.OperationVMRecovery: target.CapNodePower,
}

func newOperations(t plan.Target, emit func(e interval.Event, at time.Time)) *operations {
	simulated := func(op interval.Operation) bool {
		_, simulated := t.Simulates[capabilityOf[op]]
		return t.Simulated || simulated
	}
	return &operations{emit: emit, simulated: simulated, vms: map[string][]*operation{}, nodes: map[string][]*operation{}}
}

func (o *operations) begin(e interval.Event) *operation { return o.beginAt(e, time.Now()) }

// beginAt reports the start of an operation at a time that may be in the past.
func (o *operations) beginAt(e interval.Event, at time.Time) *operation {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	o.last++
	e.OperationID = o.last
	o.mu.Unlock()
	e.Kind, e.Simulate = interval.EventOperationStarted, o.simulated(e.Operation)
	o.emit(e, at)
	return &operation{event: e, began: at, asked: at}
}

func (o *operations) end(x *operation, err error, unasked time.Duration) {
	o.endAt(x, err, time.Now(), unasked)
}

func (o *operations) endAt(x *operation, err error, at time.Time, unasked time.Duration) {
	if o == nil || x == nil {
		return
	}
	e := x.event
	e.Kind, e.SpanNanos = interval.EventOperationEnded, unasked.Nanoseconds()
	e.UncertainNanos = e.SpanNanos
	if err != nil {
		e.Error = err.Error()
	}
	o.emit(e, at)
}

// call is one call of the target for VMs.
type call struct {
	operation interval.Operation
	vms       []target.VM
	boots     bool // if it does not fail, its end starts the wait for the agent
	restarts  bool // the target may already have powered VMs on by itself, unless it reports that they had no power
}

// Do makes a call. If the provider reports progress per VM, the work on each VM is a separate operation.
func (o *operations) Do(ctx context.Context, c call, act func(ctx context.Context) error) error {
	if o == nil || len(c.vms) == 0 {
		return act(ctx)
	}
	whole := interval.Event{Operation: c.operation, Group: c.vms[0].Group, Count: len(c.vms)}
	if slices.ContainsFunc(c.vms, func(vm target.VM) bool { return vm.Group != whole.Group }) {
		whole.Group = ""
	}
	outer := o.begin(whole)
	var mu sync.Mutex
	pending := map[string]target.VM{}
	for _, vm := range c.vms {
		pending[vm.Name] = vm
	}
	ctx = target.WithPowerless(ctx, o.powerless)
	err := act(target.WithObserver(ctx, func(name string) func(error) {
		mu.Lock()
		vm, ok := pending[name]
		delete(pending, name) // further calls of the provider for this VM, such as cleanup, are not separate operations
		mu.Unlock()
		if !ok {
			return nil
		}
		one := interval.Event{Operation: c.operation, Group: vm.Group, Subject: vm.Name, Node: vm.NodeID, Part: outer.event.OperationID}
		x := o.begin(one)
		var boot *operation
		if c.boots && vm.Power != target.PowerOn {
			one.Operation, one.Part = interval.OperationBoot, 0
			boot = o.begin(one)
		}
		return func(err error) {
			o.end(x, err, 0)
			if boot != nil && err != nil {
				o.end(boot, err, 0)
			} else if boot != nil {
				o.await(o.vms, name, boot)
				if !c.restarts {
					o.powerless(name, time.Now())
				}
			}
		}
	}))
	o.end(outer, err, 0)
	return err
}

// await keeps an operation open until its end is observed.
func (o *operations) await(open map[string][]*operation, key string, x *operation) {
	x.asked = time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	open[key] = append(open[key], x)
}

// powerless notes that a VM had no power until the given time: it could not have answered before then.
func (o *operations) powerless(vm string, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, x := range o.vms[vm] {
		if until.After(x.asked) {
			x.asked = until
		}
	}
}

// answered handles the answer of a VM to a poll that was sent at the given time.
func (o *operations) answered(vm string, put time.Time, err error) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settle(o.vms, vm, put, err)
}

// settle ends the operations that an answer ends. The caller holds the lock.
func (o *operations) settle(open map[string][]*operation, key string, put time.Time, err error) {
	var kept []*operation
	for _, x := range open[key] {
		if err != nil || put.Before(x.began) {
			x.asked = time.Now()
			kept = append(kept, x)
			continue
		}
		o.end(x, nil, max(0, put.Sub(x.asked)))
	}
	open[key] = kept
}

// lost drops the pending operations of a VM, because this run has cut its power.
func (o *operations) lost(vm string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.vms, vm)
}

type reacher func(ctx context.Context, vm target.VM) (load.Runner, error)

// watching observes successful calls of reach.
func (o *operations) watching(reach reacher) reacher {
	if o == nil {
		return reach
	}
	return func(ctx context.Context, vm target.VM) (load.Runner, error) {
		put := time.Now()
		r, err := reach(ctx, vm)
		o.answered(vm.Name, put, err)
		return r, err
	}
}

// loss is the power loss of a node, with the VMs on it.
type loss struct {
	operation interval.Operation
	node      string
	hit       []target.VM
	seen      func() // called once the target sees that the power is gone; it may still come back
}

// nodeDown measures the power-off of a node. Checks before the command are not part of the operation: if the target reports the
// times of the command and of the power loss, these are its start and end.
func (o *operations) nodeDown(ctx context.Context, l loss, act func(ctx context.Context) error) error {
	if o == nil {
		return act(ctx)
	}
	op, node, hit := l.operation, l.node, l.hit
	began := time.Now()
	changes := make(chan target.PowerChange, 1)
	err := act(target.WithPowerChange(ctx, func(c target.PowerChange) {
		select {
		case changes <- c:
			l.seen()
		default:
		}
	}))
	change := target.PowerChange{Sent: began, Seen: time.Now()}
	change.Before = change.Seen
	select {
	case told := <-changes:
		if err == nil {
			change = told
		}
	default:
	}
	x := o.beginAt(interval.Event{Operation: op, Subject: node, Node: node}, change.Sent)
	var lost []*operation
	for _, vm := range hit {
		lost = append(lost, o.beginAt(interval.Event{Operation: interval.OperationVMRecovery, Group: vm.Group, Subject: vm.Name, Node: node}, change.Sent))
	}
	o.endAt(x, err, change.Seen, change.Seen.Sub(change.Before))
	for i, vm := range hit {
		if err != nil {
			o.end(lost[i], err, 0)
			continue
		}
		if o != nil {
			o.await(o.vms, vm.Name, lost[i])
		}
	}
	return err
}

// nodeUp powers a node on, and starts waiting for its system and the cluster if the target can report them.
func (o *operations) nodeUp(ctx context.Context, t target.Target, node string, act func(ctx context.Context) error) error {
	if o == nil {
		return act(ctx)
	}
	begin := func(op interval.Operation) *operation {
		return o.begin(interval.Event{Operation: op, Subject: node, Node: node})
	}
	x := begin(interval.OperationNodeOn)
	var later []*operation
	if _, ok := t.(target.HostChecker); ok {
		later = append(later, begin(interval.OperationHostUp))
	}
	if _, ok := t.(target.ReadyChecker); ok {
		later = append(later, begin(interval.OperationClusterReady))
	}
	end, uncertain := time.Time{}, time.Duration(0)
	err := act(target.WithPowerChange(ctx, func(c target.PowerChange) { end, uncertain = c.Seen, c.Seen.Sub(c.Before) }))
	if err != nil || end.IsZero() {
		end, uncertain = time.Now(), 0
	}
	o.endAt(x, err, end, uncertain)
	for _, x := range later {
		if err != nil {
			o.end(x, err, 0)
			continue
		}
		o.await(o.nodes, string(x.event.Operation)+" "+node, x)
	}
	return err
}

// ready polls the hosts that have power again, and then the cluster. It returns the answer of the cluster.
func (o *operations) ready(ctx context.Context, t target.Target) error {
	hosts, _ := t.(target.HostChecker)
	if hosts != nil {
		for _, node := range o.waiting(interval.OperationHostUp) {
			put := time.Now()
			o.heard(interval.OperationHostUp, node, put, hosts.HostUp(ctx, node))
		}
	}
	cluster, ok := t.(target.ReadyChecker)
	if !ok {
		return nil
	}
	put := time.Now()
	err := cluster.Ready(ctx)
	for _, node := range o.waiting(interval.OperationClusterReady) {
		o.heard(interval.OperationClusterReady, node, put, err)
	}
	return err
}

func (o *operations) heard(op interval.Operation, node string, put time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settle(o.nodes, string(op)+" "+node, put, err)
}

// waiting returns the nodes for which an operation is open.
func (o *operations) waiting(op interval.Operation) []string {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var nodes []string
	for key, open := range o.nodes {
		if node, ok := strings.CutPrefix(key, string(op)+" "); ok && len(open) > 0 {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
}
