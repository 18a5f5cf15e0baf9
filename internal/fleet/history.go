package fleet

import "github.com/braggdev/bragg/internal/target"

// A list of VMs from the target was true at some time while it was read, and other branches may have changed VMs since. So the
// table counts its changes, and takes from a list only those VMs that this run has not changed since the request:
//
//	ask ──▶ target.Owned ──▶ present: the list, with later changes of this run ──▶ table

// history tracks changes of the fleet's table. It is guarded by the fleet's mu.
type history struct {
	changes int            // number of changes by this run
	changed map[string]int // by VM name: its last change
	emptied int            // the change that removed all VMs
	asked   int            // number of lists requested
	shown   int            // the latest list that is in the table
}

// listing is a request for a list of VMs.
type listing struct{ number, since int }

func (t *table) ask() listing {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history.asked++
	return listing{t.history.asked, t.history.changes}
}

// touch notes that this run changed VMs. The caller holds the lock.
func (t *table) touch(vms []target.VM) {
	h := &t.history
	h.changes++
	if h.changed == nil {
		h.changed = map[string]int{}
	}
	for _, vm := range vms {
		h.changed[vm.Name] = h.changes
	}
}

// empty notes that this run removed all VMs. The caller holds the lock.
func (t *table) empty() {
	t.history.changes++
	t.history.emptied, t.history.changed, t.vms = t.history.changes, nil, nil
	clear(t.moves.wanted) // other VMs may get the names
	clear(t.moves.fled)
}

// present merges a list with the changes that this run has made since the request, and returns the current VMs; false if a
// list that was requested later is already in the table. The caller holds the lock.
func (t *table) present(l listing, list []target.VM) ([]target.VM, bool) {
	h := &t.history
	if l.number < h.shown {
		return nil, false
	}
	own := map[string]target.VM{}
	for _, vm := range t.vms {
		if h.changed[vm.Name] > l.since {
			own[vm.Name] = vm
		}
	}
	var out []target.VM
	for _, vm := range list {
		if later, ok := own[vm.Name]; ok {
			out = append(out, later)
			delete(own, vm.Name)
		} else if h.emptied <= l.since {
			out = append(out, vm)
		}
	}
	for _, vm := range t.vms {
		if _, missing := own[vm.Name]; missing {
			out = append(out, vm)
		}
	}
	return out, true
}
