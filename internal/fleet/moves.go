package fleet

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// VMs may be moved from outside: by a cluster that restarts them elsewhere or balances load, or by an administrator. The
// placement that the scenario requested then no longer holds, so a run polls where its VMs are.

// placementPeriod is the interval between two polls. In addition, every list of VMs that a step reads is compared, and the
// last list before they are deleted.
const placementPeriod = 30 * time.Second

// lateMigration is how long after its failure a migration may still succeed: a provider that gave up waiting does not always know
// that it was stopped.
const lateMigration = 2 * placementPeriod

// lookDeadline bounds the poll after a failed migration.
const lookDeadline = 30 * time.Second

// moves tracks moves of VMs. It is guarded by the fleet's mu.
type moves struct {
	wanted map[string]errand // by VM, until it is there
	fled   map[string]flight // by VM
	looked time.Time         // when the nodes of the VMs were last read
	tell   func(Stray)
}

func newMoves(tell func(Stray)) moves {
	return moves{wanted: map[string]errand{}, fled: map[string]flight{}, tell: tell}
}

// errand is the node to which a step moves a VM, or tried to.
type errand struct {
	node  string
	until time.Time // zero while the step runs; then the deadline until which a move to the node counts as the step's
}

// flight is a node that this run switched off while a VM was on it. Platforms start such VMs elsewhere (HA), or move them aside
// before the node stops.
type flight struct {
	node string
	back int // the change that switched the node on again; 0: none
}

// cause is why a VM has changed its node.
type cause int

const (
	causeForeign  cause = iota // moved from outside the run
	causeStep                  // moved by a step that failed
	causeAfterCut              // moved by the platform, because this run switched the node off
)

// Stray is a VM that is on another node although no step moved it.
type Stray struct {
	VM    target.VM // with its new node
	From  string    // id of its previous node
	Ago   time.Duration
	cause cause
}

// AfterCut reports whether the platform moved the VM because this run had powered off its node.
func (s Stray) AfterCut() bool { return s.cause == causeAfterCut }

// strays returns the VMs of a list that are on other nodes than in the table although no step moved them there, and notes where
// they are now. The caller holds the lock.
func (t *table) strays(asked listing, vms []target.VM) []Stray {
	now := time.Now()
	var out []Stray
	for _, vm := range vms {
		for i := range t.vms {
			have := &t.vms[i]
			if have.Name != vm.Name || have.NodeID == "" || vm.NodeID == "" {
				continue
			}
			if have.NodeID == vm.NodeID {
				t.moves.stays(asked, vm)
				continue
			}
			if e, ok := t.moves.wanted[vm.Name]; ok && e.node == vm.NodeID && e.until.IsZero() {
				continue
			}
			out = append(out, Stray{VM: vm, From: have.NodeID, Ago: now.Sub(t.moves.looked), cause: t.moves.why(vm, have.NodeID)})
			have.NodeID = vm.NodeID
		}
	}
	t.moves.looked = now
	return out
}

// stays notes that a VM has not moved: one that runs on a node that was off will stay there.
func (m *moves) stays(asked listing, vm target.VM) {
	if e, ok := m.fled[vm.Name]; ok && e.node == vm.NodeID && e.back > 0 && asked.since >= e.back && vm.Power == target.PowerOn {
		delete(m.fled, vm.Name)
	}
}

// why returns why a VM has changed its node.
func (m *moves) why(vm target.VM, from string) cause {
	if e, ok := m.wanted[vm.Name]; ok && e.node == vm.NodeID && m.looked.Before(e.until) {
		delete(m.wanted, vm.Name)
		return causeStep
	}
	switch e, ok := m.fled[vm.Name]; {
	case ok && e.node == from: // the move back is still expected
		return causeAfterCut
	case ok && e.node == vm.NodeID:
		delete(m.fled, vm.Name)
		return causeAfterCut
	}
	return causeForeign
}

// tellStrays is called without the lock.
func (t *table) tellStrays(list []Stray) {
	for _, s := range list {
		if s.cause == causeStep {
			t.placed(s.VM)
			continue
		}
		t.moves.tell(s)
	}
}

// moving notes that a step moves VMs to a node, arrived that they are there. strand notes that the step failed, and polls where
// they are. A list that was read in between is outdated.
func (t *table) moving(vms []target.VM, nodeID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.touch(vms)
	for _, vm := range vms {
		t.moves.wanted[vm.Name] = errand{node: nodeID}
	}
}

func (t *table) arrived(vms []target.VM) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.touch(vms)
	for _, vm := range vms {
		delete(t.moves.wanted, vm.Name)
		delete(t.moves.fled, vm.Name)
	}
}

func (f *Fleet) strand(ctx context.Context, vms []target.VM) {
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

// flee notes that this run is about to switch off the node that VMs are on, stay that it did not, restored that the node is on
// again.
func (t *table) flee(vms []target.VM, nodeID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, vm := range vms {
		t.moves.fled[vm.Name] = flight{node: nodeID}
	}
}

func (t *table) stay(vms []target.VM) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, vm := range vms {
		delete(t.moves.fled, vm.Name)
	}
}

func (t *table) restored(nodeID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history.changes++
	for name, e := range t.moves.fled {
		if e.node == nodeID {
			e.back = t.history.changes
			t.moves.fled[name] = e
		}
	}
}

// look polls the target for the nodes of the VMs. Errors are ignored, because the next poll may succeed.
func (f *Fleet) look(ctx context.Context) {
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

// compare reports the VMs of a list that have strayed, and otherwise leaves the table unchanged.
func (t *table) compare(asked listing, list []target.VM) {
	t.mu.Lock()
	var strays []Stray
	if vms, ok := t.present(asked, list); ok {
		strays = t.strays(asked, vms)
		for _, s := range strays {
			t.touch([]target.VM{s.VM}) // a list that was requested earlier has it on its previous node
		}
	}
	t.mu.Unlock()
	t.tellStrays(strays)
}
