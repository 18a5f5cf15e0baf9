package fleet

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/target"
)

// slowTarget lets something happen while a list of its VMs is under way: before it looks, or after.
type slowTarget struct {
	target.Target
	vms           map[string]target.VM
	before, after func()
}

func (s *slowTarget) Owned(context.Context, target.Tag) ([]target.VM, error) {
	before, after := s.before, s.after
	s.before, s.after = nil, nil
	if before != nil {
		before()
	}
	list := slices.SortedFunc(maps.Values(s.vms), func(a, b target.VM) int { return strings.Compare(a.Name, b.Name) })
	if after != nil {
		after()
	}
	return list, nil
}

func newSlowFleet(names ...string) (*Fleet, *slowTarget) {
	s := &slowTarget{vms: map[string]target.VM{}}
	f := &Fleet{target: s, table: table{placed: func(target.VM) {}, moves: newMoves(func(Stray) {})}}
	for _, name := range names {
		s.vms[name] = target.VM{Name: name, NodeID: "node-1", Power: target.PowerOff}
		f.add([]target.VM{s.vms[name]})
	}
	return f, s
}

// change applies a change of another branch first to the target and then to the table.
func (s *slowTarget) change(f *Fleet, name string, how func(*target.VM)) {
	vm := s.vms[name]
	how(&vm)
	s.vms[name] = vm
	f.update([]target.VM{vm}, how)
}

func on(vm *target.VM) { vm.Power = target.PowerOn }

// TestRefreshKeepsWhatOthersDidMeanwhile: a list is older than what another branch did while it was read.
func TestRefreshKeepsWhatOthersDidMeanwhile(t *testing.T) {
	f, s := newSlowFleet("a", "b")
	s.after = func() {
		s.change(f, "a", on)
		s.vms["c"] = target.VM{Name: "c", NodeID: "node-2"}
		f.add([]target.VM{s.vms["c"]})
		moved := s.vms["b"]
		f.moving([]target.VM{moved}, "node-2")
		s.change(f, "b", func(vm *target.VM) { vm.NodeID = "node-2" })
		f.arrived([]target.VM{moved})
	}
	f.moves.tell = func(s Stray) { t.Errorf("a step's move was reported as %+v", s) }
	if err := f.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := f.Of("")
	if len(got) != 3 || got[0].Power != target.PowerOn || got[1].NodeID != "node-2" || got[2].Name != "c" {
		t.Errorf("the table holds %+v", got)
	}
	s.after = func() {
		clear(s.vms)
		f.mu.Lock()
		f.empty()
		f.mu.Unlock()
	}
	if err := f.Refresh(t.Context()); err != nil || len(f.Of("")) != 0 {
		t.Errorf("VMs that were deleted meanwhile are back: %+v, %v", f.Of(""), err)
	}
}

// TestOlderListComesLater: of two lists, the one that was requested later wins, in whichever order they arrive.
func TestOlderListComesLater(t *testing.T) {
	f, s := newSlowFleet("a")
	told := 0
	f.moves.tell = func(Stray) { told++ }
	for _, node := range []string{"node-2", "node-3"} {
		s.after = func() {
			s.vms["a"] = target.VM{Name: "a", NodeID: node, Power: target.PowerOn} // moved from outside
			if node == "node-2" {
				f.look(t.Context())
			} else if err := f.Refresh(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := f.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := f.Of(""); got[0].NodeID != node {
			t.Errorf("the table holds %+v, the VM is on %s", got, node)
		}
	}
	if told != 2 {
		t.Errorf("two moves were reported %d times", told)
	}
}

// TestTableFollowsTheTarget: whatever other branches do while lists are in flight, and whenever the lists arrive, the
// table has all changes of this run, and a final list shows no difference.
func TestTableFollowsTheTarget(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f, s := newSlowFleet("a", "b", "c")
		f.moves.tell = func(s Stray) { r.Errorf("%+v is not an unexpected move", s) }
		var step func(deep int)
		step = func(deep int) {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(r, "vm")
			_, there := s.vms[name]
			switch rapid.IntRange(0, 4).Draw(r, "what") {
			case 0:
				if there {
					s.change(f, name, on)
				}
			case 1:
				if there {
					node := rapid.SampledFrom([]string{"node-1", "node-2"}).Draw(r, "node")
					f.moving([]target.VM{s.vms[name]}, node)
					s.change(f, name, func(vm *target.VM) { vm.NodeID = node })
					f.arrived([]target.VM{s.vms[name]})
				}
			case 2:
				if !there {
					s.vms[name] = target.VM{Name: name, NodeID: "node-1"}
					f.add([]target.VM{s.vms[name]})
				}
			case 3:
				clear(s.vms)
				f.mu.Lock()
				f.empty()
				f.mu.Unlock()
			case 4:
				if deep < 3 {
					s.before, s.after = func() { step(deep + 1) }, func() { step(deep + 1) }
					if err := f.Refresh(context.Background()); err != nil {
						r.Fatal(err)
					}
				}
			}
			table := map[string]target.VM{}
			for _, vm := range f.Of("") {
				table[vm.Name] = vm
			}
			same := maps.EqualFunc(table, s.vms, func(a, b target.VM) bool { return a.NodeID == b.NodeID && a.Power == b.Power })
			if !same {
				r.Fatalf("the table holds %+v, the target %+v", table, s.vms)
			}
		}
		for range 20 {
			step(0)
		}
	})
}
