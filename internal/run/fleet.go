package run

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

// fleet is the table of this run's VMs. Every change outside goes through it and is journalled first. The table is
// guarded by mu, because loads look up who was switched off while steps change it.
type fleet struct {
	plan    *plan.Plan
	target  target.Target
	tag     target.Tag
	journal *control.Journal
	fail    control.Failpoint
	runner  func(ctx context.Context, vm target.VM) (load.Runner, error)
	gone    func(vm target.VM) // told of VMs that have lost their power; may be nil
	ops     *operations
	placed  func(vm target.VM) // told whenever a VM is on another node than before

	moves moves

	mu      sync.Mutex
	history history
	vms     []target.VM
	cuts    map[string]int // by VM name: how often this run cut its power
}

func (f *fleet) Of(group string) []target.VM {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []target.VM
	for _, vm := range f.vms {
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

func (f *fleet) add(vms []target.VM) {
	f.mu.Lock()
	f.touch(vms)
	// A branch that refreshed the table meanwhile may have found them already.
	f.vms = slices.DeleteFunc(slices.Clone(f.vms), func(have target.VM) bool {
		return slices.ContainsFunc(vms, func(vm target.VM) bool { return vm.Name == have.Name })
	})
	f.vms = append(f.vms, vms...)
	f.moves.looked = time.Now()
	f.mu.Unlock()
	for _, vm := range vms {
		f.placed(vm)
	}
}

// update changes the table's entries of vms.
func (f *fleet) update(vms []target.VM, change func(vm *target.VM)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touch(vms)
	for i := range f.vms {
		if slices.ContainsFunc(vms, func(vm target.VM) bool { return vm.Name == f.vms[i].Name }) {
			change(&f.vms[i])
		}
	}
}

func (f *fleet) Refresh(ctx context.Context) error {
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

// take puts a list into the table, and returns which VMs are elsewhere than they were there.
func (f *fleet) take(asked listing, list []target.VM) (strays []stray, placed []target.VM) {
	f.mu.Lock()
	defer f.mu.Unlock()
	vms, ok := f.present(asked, list)
	if !ok {
		return nil, nil
	}
	f.history.shown = asked.number
	strays = f.strays(asked, vms)
	before := map[string]string{}
	for _, vm := range f.vms {
		before[vm.Name] = vm.NodeID
	}
	f.vms = vms
	for _, vm := range vms {
		if before[vm.Name] != vm.NodeID {
			placed = append(placed, vm)
		}
	}
	return strays, placed
}

func (f *fleet) Deploy(ctx context.Context, group string) ([]target.VM, error) {
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

func (f *fleet) Grow(ctx context.Context, group string, scenarioCount int, linked bool) ([]target.VM, error) {
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

// create journals the names, makes the VMs and notes them.
func (f *fleet) create(ctx context.Context, before, after string, specs []target.VMSpec,
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

func (f *fleet) On(ctx context.Context, vms []target.VM) error {
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

func (f *fleet) Off(ctx context.Context, vms []target.VM) error {
	p, ok := f.target.(target.VMPower)
	if !ok {
		return errors.New("power off VMs: the target cannot")
	}
	if err := f.fail.At("vms.power-off"); err != nil {
		return err
	}
	f.cut(vms)
	if err := p.PowerOffVMs(ctx, f.tag, vms); err != nil {
		return fmt.Errorf("power off %d VMs: %w", len(vms), err)
	}
	f.lose(vms)
	f.update(vms, func(vm *target.VM) { vm.Power = target.PowerOff })
	return f.fail.At("vms.powered-off")
}

// cut notes, before it happens, that this run takes the power from VMs: loads that are lost there are no failure.
func (f *fleet) cut(vms []target.VM) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, vm := range vms {
		f.cuts[vm.Name]++
	}
}

// lose tells that VMs have lost their power.
func (f *fleet) lose(vms []target.VM) {
	for _, vm := range vms {
		f.ops.lost(vm.Name)
	}
	f.hangUp(vms)
}

// hangUp ends the connections to the agents of VMs, which may take its time.
func (f *fleet) hangUp(vms []target.VM) {
	if f.gone == nil {
		return
	}
	for _, vm := range vms {
		f.gone(vm)
	}
}

// cutsOf returns how often this run has cut the VM's power.
func (f *fleet) cutsOf(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cuts[name]
}

// onNode returns the VMs that the table places on a node.
func (f *fleet) onNode(nodeID string) []target.VM {
	return slices.DeleteFunc(f.Of(""), func(vm target.VM) bool { return vm.NodeID != nodeID })
}

func (f *fleet) Reach(ctx context.Context, vm target.VM) error {
	if err := f.fail.At("load.reach"); err != nil {
		return err
	}
	_, err := f.runner(ctx, vm)
	return err
}

func (f *fleet) Move(ctx context.Context, vms []target.VM, nodeID string) error {
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

// Delete removes every VM that carries the run's tag, also those that the table does not know.
func (f *fleet) Delete(ctx context.Context) error {
	if err := f.fail.At("vms.delete"); err != nil {
		return err
	}
	asked := f.ask()
	vms, err := f.target.Owned(ctx, f.tag)
	if err != nil {
		return fmt.Errorf("list the run's VMs: %w", err)
	}
	f.compare(asked, vms)
	f.cut(vms)
	if len(vms) > 0 {
		if err := f.target.Delete(ctx, f.tag, vms); err != nil {
			return fmt.Errorf("delete %d VMs: %w", len(vms), err)
		}
		f.lose(vms)
	}
	f.mu.Lock()
	f.empty()
	f.mu.Unlock()
	if err := f.fail.At("vms.deleted"); err != nil {
		return err
	}
	return f.journal.Undone(control.Thing{Kind: control.ThingVMs})
}
