// Package fleet manages the VMs of one run and switches its nodes. Every external change is journalled first. The package reports
// how long each change took, and which VMs moved without a step.
//
//	Config ──New──▶ Fleet: Deploy, Grow, On, Off, Move, Delete ──▶ journal ──▶ target ──▶ table
//	                Nodes: Off, Shutdown, On
//	                Watch: polls where the VMs are ──▶ Strayed; passes on the platform's events ──▶ Reported
//
//	fleet.go, nodes.go     operations on VMs and nodes
//	history.go, moves.go   the table of VMs, reconciled with older lists and with moves from outside
//	reports.go             events of the platform
//	operations.go          durations of these operations
package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
)

// Config has the dependencies of a fleet.
type Config struct {
	Plan    *plan.Plan
	Target  target.Target
	Journal *control.Journal // its header holds the tag
	// Runner reaches the agent of a VM.
	Runner func(ctx context.Context, vm target.VM) (load.Runner, error)
	// Gone is called for VMs that have lost power, Placed whenever a VM is on another node than before, Strayed when it
	// moved there without a step, and Emit for operations. All may be nil.
	Gone    func(vm target.VM)
	Placed  func(vm target.VM)
	Strayed func(s Stray)
	Emit    func(e interval.Event, at time.Time)
	// Reported is called for the platform's own events, Deaf when the platform gives none although it could. Both may be nil.
	Reported func(e target.PlatformEvent)
	Deaf     func(err error)
	// Failpoint makes named places fail in tests; nil otherwise.
	Failpoint control.Failpoint
}

// Fleet manages the VMs of one run. Every external change goes through it and is journalled first.
type Fleet struct {
	table
	plan    *plan.Plan
	target  target.Target
	tag     target.Tag
	journal *control.Journal
	fail    control.Failpoint
	runner  reacher
	gone    func(vm target.VM)
	ops     *operations

	reported func(e target.PlatformEvent)
	deaf     func(err error)
}

// New returns a fleet without VMs.
func New(c Config) *Fleet {
	f := &Fleet{plan: c.Plan, target: c.Target, tag: c.Journal.Header().Tag, journal: c.Journal, fail: c.Failpoint, gone: c.Gone,
		table: table{powerCuts: map[string]int{}, placed: func(target.VM) {}, moves: newMoves(func(Stray) {})}}
	if c.Placed != nil {
		f.placed = c.Placed
	}
	if c.Strayed != nil {
		f.moves.tell = c.Strayed
	}
	f.reported, f.deaf = func(target.PlatformEvent) {}, func(error) {}
	if c.Reported != nil {
		f.reported = c.Reported
	}
	if c.Deaf != nil {
		f.deaf = c.Deaf
	}
	if c.Emit != nil {
		f.ops = newOperations(c.Plan.Target, c.Emit)
	}
	f.runner = f.ops.watching(c.Runner)
	return f
}

// Runner reaches the agent of a VM.
func (f *Fleet) Runner(ctx context.Context, vm target.VM) (load.Runner, error) {
	return f.runner(ctx, vm)
}

// Tag returns the tag of the run's VMs.
func (f *Fleet) Tag() target.Tag { return f.tag }

// Nodes returns the power control of the nodes.
func (f *Fleet) Nodes(list []target.Node) *Nodes { return &Nodes{list: list, fleet: f} }

// Timed implements verb.Operations.
func (f *Fleet) Timed(ctx context.Context, op interval.Operation, vms []target.VM, act func(ctx context.Context) error) error {
	return f.ops.Do(ctx, call{operation: op, vms: vms}, act)
}

// Ready implements verb.Operations.
func (f *Fleet) Ready(ctx context.Context) error { return f.ops.ready(ctx, f.target) }

// table is the known state of the VMs. It is guarded by mu, because loads look up powered-off VMs while steps change it.
type table struct {
	placed func(vm target.VM) // called whenever a VM is on another node than before

	mu        sync.Mutex
	history   history
	moves     moves
	vms       []target.VM
	powerCuts map[string]int // by VM name: how often this run cut its power
}

func (t *table) Of(group string) []target.VM {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []target.VM
	for _, vm := range t.vms {
		if group == "" || vm.Group == group {
			out = append(out, vm)
		}
	}
	slices.SortStableFunc(out, func(a, b target.VM) int {
		if a.Group != b.Group {
			return strings.Compare(a.Group, b.Group)
		}
		return a.Ordinal - b.Ordinal
	})
	return out
}

func (t *table) add(vms []target.VM) {
	t.mu.Lock()
	t.touch(vms)
	// A branch that refreshed the table in the meantime may already have found them.
	t.vms = slices.DeleteFunc(slices.Clone(t.vms), func(have target.VM) bool {
		return slices.ContainsFunc(vms, func(vm target.VM) bool { return vm.Name == have.Name })
	})
	t.vms = append(t.vms, vms...)
	t.moves.looked = time.Now()
	t.mu.Unlock()
	for _, vm := range vms {
		t.placed(vm)
	}
}

// update changes the table's entries of vms.
func (t *table) update(vms []target.VM, change func(vm *target.VM)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.touch(vms)
	for i := range t.vms {
		if slices.ContainsFunc(vms, func(vm target.VM) bool { return vm.Name == t.vms[i].Name }) {
			change(&t.vms[i])
		}
	}
}

func (f *Fleet) Refresh(ctx context.Context) error {
	asked := f.ask()
	list, err := f.target.Owned(ctx, f.tag)
	if err != nil {
		return fmt.Errorf("list the run's VMs: %w", err)
	}
	strays, placed := f.take(asked, list)
	f.tellStrays(strays)
	for _, vm := range placed {
		f.placed(vm)
	}
	return nil
}

// take puts a list into the table, and returns which VMs are on another node than the table had.
func (t *table) take(asked listing, list []target.VM) (strays []Stray, placed []target.VM) {
	t.mu.Lock()
	defer t.mu.Unlock()
	vms, ok := t.present(asked, list)
	if !ok {
		return nil, nil
	}
	t.history.shown = asked.number
	strays = t.strays(asked, vms)
	before := map[string]string{}
	for _, vm := range t.vms {
		before[vm.Name] = vm.NodeID
	}
	t.vms = vms
	for _, vm := range vms {
		if before[vm.Name] != vm.NodeID {
			placed = append(placed, vm)
		}
	}
	return strays, placed
}

func (f *Fleet) Deploy(ctx context.Context, group string) ([]target.VM, error) {
	g, ok := f.plan.Group(group)
	if !ok {
		return nil, fmt.Errorf("deploy group %q: not in the plan", group)
	}
	if n := len(f.Of(group)); n > 0 {
		return nil, fmt.Errorf("deploy group %q: it has %d VMs already", group, n)
	}
	return f.create(ctx, "vms.create", "vms.created", g.Specs(f.plan.Target.Nodes, 0, g.Count),
		func(specs []target.VMSpec) (vms []target.VM, err error) {
			err = f.ops.Do(ctx, call{operation: interval.OperationDeploy, vms: planned(specs)}, func(ctx context.Context) error {
				vms, err = f.target.Create(ctx, f.tag, specs)
				return err
			})
			return vms, err
		})
}

func (f *Fleet) Grow(ctx context.Context, group string, scenarioCount int, linked bool) ([]target.VM, error) {
	if err := f.Refresh(ctx); err != nil {
		return nil, err
	}
	g, _ := f.plan.Group(group)
	have := f.Of(group)
	if len(have) == 0 {
		return nil, fmt.Errorf("grow group %q: it has no VM to clone", group)
	}
	cloner, ok := f.target.(target.Cloner)
	if !ok {
		return nil, fmt.Errorf("grow group %q: the target cannot clone", group)
	}
	specs := g.Specs(f.plan.Target.Nodes, len(have), g.Scaled(scenarioCount))
	vms, err := f.create(ctx, "vms.clone", "vms.cloned", specs, func(specs []target.VMSpec) (vms []target.VM, err error) {
		err = f.ops.Do(ctx, call{operation: interval.OperationClone, vms: planned(specs)}, func(ctx context.Context) error {
			vms, err = cloner.CloneVM(ctx, f.tag, have[0], specs, linked)
			return err
		})
		return vms, err
	})
	if err != nil || have[0].Power != target.PowerOn {
		return vms, err
	}
	return vms, f.On(ctx, vms)
}

// planned are VMs that do not exist yet.
func planned(specs []target.VMSpec) []target.VM {
	vms := make([]target.VM, len(specs))
	for i, s := range specs {
		vms[i] = target.VM{Name: s.Name, Group: s.Group, NodeID: s.NodeID}
	}
	return vms
}

// create journals the names, creates the VMs and adds them to the table.
func (f *Fleet) create(ctx context.Context, before, after string, specs []target.VMSpec,
	act func([]target.VMSpec) ([]target.VM, error)) ([]target.VM, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	if err := f.fail.At(before); err != nil {
		return nil, err
	}
	thing := control.Thing{Kind: control.ThingVMs}
	for _, s := range specs {
		thing.Names = append(thing.Names, s.Name)
	}
	var vms []target.VM
	err := f.journal.Intend(thing, func() error {
		var err error
		if vms, err = act(specs); err != nil {
			return err
		}
		f.add(vms)
		return f.fail.At(after)
	})
	return vms, err
}

func (f *Fleet) On(ctx context.Context, vms []target.VM) error {
	p, ok := f.target.(target.VMPower)
	if !ok {
		return errors.New("power on VMs: the target cannot")
	}
	if err := f.fail.At("vms.power-on"); err != nil {
		return err
	}
	_, restarts := f.target.(target.Placer)
	on := func(ctx context.Context) error { return p.PowerOnVMs(ctx, f.tag, vms) }
	if err := f.ops.Do(ctx, call{operation: interval.OperationPowerOn, vms: vms, boots: true, restarts: restarts}, on); err != nil {
		return fmt.Errorf("power on %d VMs: %w", len(vms), err)
	}
	f.update(vms, func(vm *target.VM) { vm.Power = target.PowerOn })
	return f.fail.At("vms.powered-on")
}

func (f *Fleet) Off(ctx context.Context, vms []target.VM) error {
	p, ok := f.target.(target.VMPower)
	if !ok {
		return errors.New("power off VMs: the target cannot")
	}
	if err := f.fail.At("vms.power-off"); err != nil {
		return err
	}
	f.notePowerCut(vms)
	if err := p.PowerOffVMs(ctx, f.tag, vms); err != nil {
		return fmt.Errorf("power off %d VMs: %w", len(vms), err)
	}
	f.lose(vms)
	f.update(vms, func(vm *target.VM) { vm.Power = target.PowerOff })
	return f.fail.At("vms.powered-off")
}

// notePowerCut records in advance that this run cuts the power of VMs: loads lost on them are not failures.
func (t *table) notePowerCut(vms []target.VM) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, vm := range vms {
		t.powerCuts[vm.Name]++
	}
}

// lose reports that VMs have lost their power.
func (f *Fleet) lose(vms []target.VM) {
	for _, vm := range vms {
		f.ops.lost(vm.Name)
	}
	f.hangUp(vms)
}

// hangUp ends the connections to the agents of VMs, which may take a while.
func (f *Fleet) hangUp(vms []target.VM) {
	if f.gone == nil {
		return
	}
	for _, vm := range vms {
		f.gone(vm)
	}
}

// PowerCutsOf returns how often this run has cut the VM's power.
func (t *table) PowerCutsOf(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.powerCuts[name]
}

// onNode returns the VMs that the table places on a node.
func (t *table) onNode(nodeID string) []target.VM {
	return slices.DeleteFunc(t.Of(""), func(vm target.VM) bool { return vm.NodeID != nodeID })
}

func (f *Fleet) Reach(ctx context.Context, vm target.VM) error {
	if err := f.fail.At("load.reach"); err != nil {
		return err
	}
	_, err := f.runner(ctx, vm)
	return err
}

func (f *Fleet) Move(ctx context.Context, vms []target.VM, nodeID string) error {
	m, ok := f.target.(target.Migrator)
	if !ok {
		return errors.New("migrate VMs: the target cannot")
	}
	if len(vms) == 0 {
		return nil
	}
	f.moving(vms, nodeID)
	move := func(ctx context.Context) error { return m.MigrateVMs(ctx, f.tag, vms, nodeID) }
	if err := f.ops.Do(ctx, call{operation: interval.OperationMigrate, vms: vms}, move); err != nil {
		f.strand(ctx, vms)
		return fmt.Errorf("migrate %d VMs to node %q: %w", len(vms), nodeID, err)
	}
	f.update(vms, func(vm *target.VM) { vm.NodeID = nodeID })
	f.arrived(vms)
	for _, vm := range vms {
		vm.NodeID = nodeID
		f.placed(vm)
	}
	return nil
}

// Delete removes every VM that carries the run's tag, also those that the table does not know, and records that none is left.
func (f *Fleet) Delete(ctx context.Context) error {
	if err := f.Remove(ctx); err != nil {
		return err
	}
	return f.journal.Undone(control.Thing{Kind: control.ThingVMs})
}

// Remove is Delete without the record: nodes that do not answer may have more of them.
func (f *Fleet) Remove(ctx context.Context) error {
	if err := f.fail.At("vms.delete"); err != nil {
		return err
	}
	asked := f.ask()
	vms, err := f.target.Owned(ctx, f.tag)
	if err != nil {
		return fmt.Errorf("list the run's VMs: %w", err)
	}
	f.compare(asked, vms)
	f.notePowerCut(vms)
	if len(vms) > 0 {
		if err := f.target.Delete(ctx, f.tag, vms); err != nil {
			return fmt.Errorf("delete %d VMs: %w", len(vms), err)
		}
		f.lose(vms)
	}
	f.mu.Lock()
	f.empty()
	f.mu.Unlock()
	return f.fail.At("vms.deleted")
}
