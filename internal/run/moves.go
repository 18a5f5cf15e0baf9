package run

import (
	"context"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/target"
)

// VMs may move by somebody else's hand: a cluster that restarts them elsewhere or evens out load, or an administrator. The
// placement that a scenario asked for then no longer holds, so a run looks where its VMs are.

// placementPeriod is the pause between two looks. Beside them every list of VMs that a step reads is compared, and the last
// one before they are deleted.
const placementPeriod = 30 * time.Second

// lateMigration is how long after its failure a migration may still go through: a provider that gave up waiting does not always
// know that it was stopped.
const lateMigration = 2 * placementPeriod

// lookDeadline bounds the look after a migration that failed.
const lookDeadline = 30 * time.Second

// moves is what the fleet knows of moves. It is guarded by the fleet's mu.
type moves struct {
	wanted map[string]errand // by VM, until it is there
	fled   map[string]flight // by VM
	looked time.Time         // when VMs were last seen where they are
	tell   func(stray)
}

func newMoves(tell func(stray)) moves {
	return moves{wanted: map[string]errand{}, fled: map[string]flight{}, tell: tell}
}

// errand is where a step is moving a VM to, or was when it failed.
type errand struct {
	node  string
	until time.Time // zero while the step is at it; else by when the VM has to be there to have been moved by it
}

// flight is a node that this run switched off while a VM was on it. Platforms start such VMs elsewhere (HA), or move them aside
// before the node stops.
type flight struct {
	node string
	back int // which change switched the node on again; 0: none
}

// cause says why a VM is elsewhere than it was.
type cause int

const (
	causeForeign  cause = iota // somebody else moved it
	causeStep                  // a step did, which failed
	causeAfterCut              // the platform did, because this run switched the node off
)

// stray is a VM that is on another node although no step has said so.
type stray struct {
	vm    target.VM // where it is
	from  string    // id of the node where it was
	ago   time.Duration
	cause cause
}

// strays returns the VMs of a list that are on other nodes than in the table although no step moved them there, and notes where
// they are now. The caller holds the lock.
func (f *fleet) strays(asked listing, vms []target.VM) []stray {
	now := time.Now()
	var out []stray
	for _, vm := range vms {
		for i := range f.vms {
			have := &f.vms[i]
			if have.Name != vm.Name || have.NodeID == "" || vm.NodeID == "" {
				continue
			}
			if have.NodeID == vm.NodeID {
				f.moves.stays(asked, vm)
				continue
			}
			if e, ok := f.moves.wanted[vm.Name]; ok && e.node == vm.NodeID && e.until.IsZero() {
				continue
			}
			out = append(out, stray{vm: vm, from: have.NodeID, ago: now.Sub(f.moves.looked), cause: f.moves.why(vm, have.NodeID)})
			have.NodeID = vm.NodeID
		}
	}
	f.moves.looked = now
	return out
}

// stays notes that a VM is where it was: one that runs on a node which was off is there for good.
func (m *moves) stays(asked listing, vm target.VM) {
	if e, ok := m.fled[vm.Name]; ok && e.node == vm.NodeID && e.back > 0 && asked.since >= e.back && vm.Power == target.PowerOn {
		delete(m.fled, vm.Name)
	}
}

// why tells why a VM is not where it was.
func (m *moves) why(vm target.VM, from string) cause {
	if e, ok := m.wanted[vm.Name]; ok && e.node == vm.NodeID && m.looked.Before(e.until) {
		delete(m.wanted, vm.Name)
		return causeStep
	}
	switch e, ok := m.fled[vm.Name]; {
	case ok && e.node == from: // the way back is still to come
		return causeAfterCut
	case ok && e.node == vm.NodeID:
		delete(m.fled, vm.Name)
		return causeAfterCut
	}
	return causeForeign
}

// tellStrays is called without the lock.
func (f *fleet) tellStrays(list []stray) {
	for _, s := range list {
		if s.cause == causeStep {
			f.placed(s.vm)
			continue
		}
		f.moves.tell(s)
	}
}

// moving notes that a step moves VMs to a node; arrived that they are there; strand that the step failed, and looks where they
// are. A list that was read meanwhile is outdated.
func (f *fleet) moving(vms []target.VM, nodeID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touch(vms)
	for _, vm := range vms {
		f.moves.wanted[vm.Name] = errand{node: nodeID}
	}
}

func (f *fleet) arrived(vms []target.VM) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touch(vms)
	for _, vm := range vms {
		delete(f.moves.wanted, vm.Name)
		delete(f.moves.fled, vm.Name)
	}
}

func (f *fleet) strand(ctx context.Context, vms []target.VM) {
	f.mu.Lock()
	f.touch(vms)
	for _, vm := range vms {
		e := f.moves.wanted[vm.Name]
		e.until = time.Now().Add(lateMigration)
		f.moves.wanted[vm.Name] = e
	}
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookDeadline)
	defer cancel()
	f.look(ctx)
}

// flee notes that this run is about to switch off the node that VMs are on; stay that it did not; restored that the node is on
// again.
func (f *fleet) flee(vms []target.VM, nodeID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, vm := range vms {
		f.moves.fled[vm.Name] = flight{node: nodeID}
	}
}

func (f *fleet) stay(vms []target.VM) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, vm := range vms {
		delete(f.moves.fled, vm.Name)
	}
}

func (f *fleet) restored(nodeID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.history.changes++
	for name, e := range f.moves.fled {
		if e.node == nodeID {
			e.back = f.history.changes
			f.moves.fled[name] = e
		}
	}
}

// look asks the target where the VMs are. What it cannot tell now it may tell the next time.
func (f *fleet) look(ctx context.Context) {
	f.mu.Lock()
	count := len(f.vms)
	f.mu.Unlock()
	if count == 0 {
		return
	}
	asked := f.ask()
	if list, err := f.target.Owned(ctx, f.tag); err == nil {
		f.compare(asked, list)
	}
}

// compare tells which VMs of a list have strayed, and leaves the table as it is but for that.
func (f *fleet) compare(asked listing, list []target.VM) {
	f.mu.Lock()
	var strays []stray
	if vms, ok := f.present(asked, list); ok {
		strays = f.strays(asked, vms)
		for _, s := range strays {
			f.touch([]target.VM{s.vm}) // a list that was asked for before shows it where it was
		}
	}
	f.mu.Unlock()
	f.tellStrays(strays)
}

// watch looks from time to time until ctx ends, where VMs can move at all.
func (f *fleet) watch(ctx context.Context) {
	if _, ok := f.target.(target.Migrator); !ok {
		return
	}
	tick := time.NewTicker(placementPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.look(ctx)
		}
	}
}

// strayed tells that a VM has moved although no step moved it.
func (e *Engine) strayed(s stray) {
	told := interval.Event{Kind: interval.EventDisturbance, Phase: e.phaseName(), Group: s.vm.Group, Subject: s.vm.Name,
		Message: fmt.Sprintf("%s is on %s and no longer on %s, and no step moved it", s.vm.Name, e.nodeName(s.vm.NodeID), e.nodeName(s.from))}
	if s.cause == causeAfterCut {
		told.Kind = interval.EventAnnotation
		told.Message = fmt.Sprintf("%s is on %s and no longer on %s: the platform moved it, since this run switched off a node that it was on",
			s.vm.Name, e.nodeName(s.vm.NodeID), e.nodeName(s.from))
	}
	e.emit(interval.Event{Kind: interval.EventPlaced, Phase: e.phaseName(), Group: s.vm.Group, Subject: s.vm.Name, Node: s.vm.NodeID,
		From: s.from, SpanNanos: s.ago.Nanoseconds(), Unasked: true, AfterCut: s.cause == causeAfterCut})
	e.emit(told)
}

func (e *Engine) nodeName(id string) string {
	for _, n := range e.plan.Target.Nodes {
		if n.ID == id {
			return n.Name
		}
	}
	return id
}
