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

// moves is what the fleet knows of moves. It is guarded by the fleet's mu.
type moves struct {
	wanted map[string]string // node that a step is moving a VM to, by VM, until it is there
	looked time.Time         // when VMs were last seen where they are
	tell   func(stray)
}

// stray is a VM that is on another node although no step moved it.
type stray struct {
	vm   target.VM // where it is
	from string    // id of the node where it was
	ago  time.Duration
}

// strays returns the VMs of a list that are on other nodes than in the table although no step moved them, and notes where
// they are now. The caller holds the lock.
func (f *fleet) strays(vms []target.VM) []stray {
	now := time.Now()
	var out []stray
	for _, vm := range vms {
		for i := range f.vms {
			have := &f.vms[i]
			if have.Name != vm.Name || have.NodeID == vm.NodeID || have.NodeID == "" || vm.NodeID == "" || f.moves.wanted[vm.Name] == vm.NodeID {
				continue
			}
			out = append(out, stray{vm: vm, from: have.NodeID, ago: now.Sub(f.moves.looked)})
			have.NodeID = vm.NodeID
		}
	}
	f.moves.looked = now
	return out
}

// tellStrays is called without the lock.
func (f *fleet) tellStrays(list []stray) {
	for _, s := range list {
		f.moves.tell(s)
	}
}

// moving notes that a step moves VMs to a node; arrived that they are there. A list that was read meanwhile is outdated.
func (f *fleet) moving(vms []target.VM, nodeID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touch(vms)
	for _, vm := range vms {
		f.moves.wanted[vm.Name] = nodeID
	}
}

func (f *fleet) arrived(vms []target.VM) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touch(vms)
	for _, vm := range vms {
		delete(f.moves.wanted, vm.Name)
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
		strays = f.strays(vms)
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
	e.emit(interval.Event{Kind: interval.EventPlaced, Phase: e.phaseName(), Group: s.vm.Group, Subject: s.vm.Name, Node: s.vm.NodeID,
		From: s.from, SpanNanos: s.ago.Nanoseconds(), Unasked: true})
	e.emit(interval.Event{Kind: interval.EventDisturbance, Phase: e.phaseName(), Group: s.vm.Group, Subject: s.vm.Name,
		Message: fmt.Sprintf("%s is on %s and no longer on %s, and no step moved it", s.vm.Name, e.nodeName(s.vm.NodeID), e.nodeName(s.from))})
}

func (e *Engine) nodeName(id string) string {
	for _, n := range e.plan.Target.Nodes {
		if n.ID == id {
			return n.Name
		}
	}
	return id
}
