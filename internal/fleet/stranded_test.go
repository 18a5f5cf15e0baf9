package fleet

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// failingMover is a target on which migrations fail.
type failingMover struct {
	*slowTarget
	moves []string      // VMs that arrive nevertheless
	late  time.Duration // after the failure

	mu sync.Mutex // VMs arrive while lists are made
}

func (m *failingMover) Owned(ctx context.Context, tag target.Tag) ([]target.VM, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slowTarget.Owned(ctx, tag)
}

func (m *failingMover) put(name, nodeID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	vm := m.vms[name]
	vm.NodeID = nodeID
	m.vms[name] = vm
}

func (m *failingMover) MigrateVMs(_ context.Context, _ target.Tag, vms []target.VM, nodeID string) error {
	move := func() {
		for _, vm := range vms {
			if slices.Contains(m.moves, vm.Name) {
				m.put(vm.Name, nodeID)
			}
		}
	}
	if m.late > 0 {
		time.AfterFunc(m.late, move)
	} else {
		move()
	}
	return errors.New("timed out")
}

// TestTableAfterFailedMigration: after a failed migration, the table has the actual nodes of the VMs. A VM that arrives
// late was moved by the step; a VM that is moved to the same node later was not.
func TestTableAfterFailedMigration(t *testing.T) {
	for name, c := range map[string]struct {
		moves   []string
		late    time.Duration
		somehow time.Duration // delay after which "a" is moved to node-2 from outside; 0: never
		at      map[string]string
		placed  []string
		strays  []string
	}{
		"nothing moved":           {at: map[string]string{"a": "node-1", "b": "node-1"}},
		"all moved nevertheless":  {moves: []string{"a", "b"}, at: map[string]string{"a": "node-2", "b": "node-2"}, placed: []string{"a node-2", "b node-2"}},
		"one moved":               {moves: []string{"b"}, at: map[string]string{"a": "node-1", "b": "node-2"}, placed: []string{"b node-2"}},
		"one arrives a bit later": {moves: []string{"a"}, late: 40 * time.Second, at: map[string]string{"a": "node-2", "b": "node-1"}, placed: []string{"a node-2"}},
		"one is moved later":      {somehow: 5 * time.Minute, at: map[string]string{"a": "node-2", "b": "node-1"}, strays: []string{"a node-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, s := newSlowFleet("a", "b")
				var placed, strays []string
				f.placed = func(vm target.VM) { placed = append(placed, vm.Name+" "+vm.NodeID) }
				f.moves.tell = func(s Stray) { strays = append(strays, s.VM.Name+" "+s.VM.NodeID) }
				m := &failingMover{slowTarget: s, moves: c.moves, late: c.late}
				f.target = m
				if err := f.Move(t.Context(), f.Of(""), "node-2"); err == nil {
					t.Fatal("the migration succeeded")
				}
				if c.late == 0 && c.somehow == 0 {
					expectAt(t, f, c.at) // at once: the next step goes by it
				}
				if c.somehow > 0 {
					time.AfterFunc(c.somehow, func() { m.put("a", "node-2") })
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				f.Watch(ctx)
				expectAt(t, f, c.at)
				if !slices.Equal(placed, c.placed) || !slices.Equal(strays, c.strays) {
					t.Errorf("placed %q, strays %q, want %q and %q", placed, strays, c.placed, c.strays)
				}
			})
		})
	}
}

func expectAt(t *testing.T, f *Fleet, at map[string]string) {
	t.Helper()
	for _, vm := range f.Of("") {
		if vm.NodeID != at[vm.Name] {
			t.Errorf("the table has %q on %s, it is on %s", vm.Name, vm.NodeID, at[vm.Name])
		}
	}
}

// A stop that comes with the failure does not wait for an answer.
func TestStopAfterFailedMigration(t *testing.T) {
	f, s := newSlowFleet("a")
	f.target = &failingMover{slowTarget: s, moves: []string{"a"}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Move(ctx, f.Of(""), "node-2"); err == nil {
		t.Fatal("the migration succeeded")
	}
	if err := f.Refresh(t.Context()); err != nil || f.Of("")[0].NodeID != "node-2" {
		t.Errorf("the table has %+v, %v", f.Of(""), err)
	}
}
