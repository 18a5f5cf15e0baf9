package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
)

// workloads are those that an agent knows: running, or ended and not forgotten yet. Only the holder of the lease with the highest
// fencing counter may change them.
type workloads struct {
	server  *Server
	running sync.WaitGroup

	mu     sync.Mutex
	byID   map[string]*task
	order  []string // ids in the order of their start, for forgetting the oldest
	fence  uint64   // highest seen
	closed bool
}

// close refuses further workloads.
func (k *workloads) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
}

// find returns nil for an unknown id.
func (k *workloads) find(id string) *task {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byID[id]
}

// whenFenced calls change, under the lock, for the holder of the lease; controllers that have lost it are refused. What a former
// holder started is stopped when the next one is first heard.
func (k *workloads) whenFenced(fence uint64, change func() error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if fence < k.fence {
		return &diag.Error{Code: codeStaleFence, Message: "another run has taken over this agent", Exit: diag.ExitLocked}
	}
	if fence > k.fence {
		k.fence = fence
		for _, t := range k.byID {
			t.cancel()
		}
	}
	return change()
}

// admit starts the workload unless one with this id is known already. The caller holds the lock.
func (k *workloads) admit(id string, o order) (*task, error) {
	work := o.work
	generator, ok := k.server.options.Generators[work.Generator]
	if !ok {
		return nil, badRequest("run workload %q: no generator %q here", work.Name, work.Generator)
	}
	if err := k.checkDevices(work); err != nil {
		return nil, err
	}
	if known, ok := k.byID[id]; ok {
		return known, nil
	}
	if k.closed {
		return nil, &diag.Error{Code: codeBusy, Message: "the agent is ending", Exit: diag.ExitUnavailable}
	}
	if len(k.byID) >= tasksMax && !k.forgetEnded() {
		return nil, &diag.Error{
			Code: codeBusy, Message: fmt.Sprintf("run workload %q: %d are running already", work.Name, tasksMax),
			Exit: diag.ExitUnavailable,
		}
	}
	t := newTask(id, o, k.server)
	ctx, cancel := context.WithCancel(k.server.ctx)
	t.cancel = cancel
	k.byID[id] = t
	k.order = append(k.order, id)
	k.running.Go(func() {
		defer cancel()
		k.server.noteTask(work, "preparing", nil)
		t.run(ctx, generator)
	})
	return t, nil
}

// forgetEnded drops the oldest task that has ended. The caller holds the lock.
func (k *workloads) forgetEnded() bool {
	for _, id := range k.order {
		if !k.byID[id].health().Running {
			k.drop(id)
			return true
		}
	}
	return false
}

// drop forgets a task. The caller holds the lock.
func (k *workloads) drop(id string) {
	k.byID[id].forget()
	delete(k.byID, id)
	k.order = slices.DeleteFunc(k.order, func(other string) bool { return other == id })
}

func (k *workloads) checkDevices(work load.Workload) error {
	if len(work.Devices) > wire.DevicesMax {
		return badRequest("run workload %q: %d devices, want at most %d", work.Name, len(work.Devices), wire.DevicesMax)
	}
	if k.server.options.Devices == nil {
		return nil
	}
	for _, d := range work.Devices {
		known := slices.ContainsFunc(k.server.options.Devices, func(o load.Device) bool {
			// A rehearsal names the size that the scenario says, from which its extents are scaled down to this disk.
			return o.Name == d.Name && o.Path == d.Path && (d.SizeBytes <= o.SizeBytes || work.Scale.Factor != 0)
		})
		if !known {
			return &diag.Error{
				Code: codeForeignDevice, Exit: diag.ExitRefused,
				Message: fmt.Sprintf("run workload %q: device %q is not a disk of this VM", work.Name, d.Name),
			}
		}
	}
	return nil
}

// health returns what all workloads are doing, the oldest first.
func (k *workloads) health() []wire.TaskHealth {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := []wire.TaskHealth{}
	for _, id := range k.order {
		list = append(list, k.byID[id].health())
	}
	return list
}

// stopAll stops every load and returns how many were running.
func (k *workloads) stopAll() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for _, t := range k.byID {
		if !t.stopped.Swap(true) && t.health().Running {
			n++
		}
		t.cancel()
	}
	return n
}
