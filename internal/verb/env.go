package verb

import (
	"context"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// Env is the environment of a running step. All creation, deletion and switching goes through VMs, Power and Nodes, which journal
// the intent first. Target is for changes that end with the VMs (snapshots, migration, placement) and for queries.
type Env struct {
	Operations
	VMs   VMs
	Power VMSwitch
	Nodes NodeSwitch
	Loads Loads
	Notes Notes
	// Maintenance takes the node with that index out of use, or puts it into use again.
	Maintenance func(ctx context.Context, index int, enter bool) error
	Work        Work
	Target      target.Target
	Tag         target.Tag
	Plan        *plan.Plan
	Step        plan.Step // the running step
	// Scenario is the document; Dir is the working folder of the scenario's programs, whose content stays with the run.
	Scenario *scenario.Scenario
	Dir      string
	// Private is where a step may create a folder for secrets. It may not exist yet, and is removed with the journal.
	Private string
	// Mask hides the secrets of the scenario in a text that stays with the run; nil hides none.
	Mask func(text string) string
	// Logs copies the logs of agents into the bundle; may be nil.
	Logs func(ctx context.Context, vms []target.VM) error
}

// Operations measures how long operations on VMs and nodes take.
type Operations interface {
	// Timed makes one call of the target for VMs and records its duration for each of them.
	Timed(ctx context.Context, op interval.Operation, vms []target.VM, act func(ctx context.Context) error) error
	// Ready returns the cluster's readiness, nil if the target cannot report it. It records which nodes and clusters are up
	// again.
	Ready(ctx context.Context) error
}

// VMs are the VMs of this run only.
type VMs interface {
	// Of returns the VMs of a group in the order of their ordinals; "" is every group.
	Of(group string) []target.VM
	// Deploy creates the VMs of a group as planned, powered off.
	Deploy(ctx context.Context, group string) ([]target.VM, error)
	// Grow clones the group's first VM in its current state until the group has as many VMs as the scenario's count means in this
	// plan, and returns the new ones. They are powered on if the first VM is.
	Grow(ctx context.Context, group string, scenarioCount int, linked bool) ([]target.VM, error)
	// Delete removes all VMs of the run.
	Delete(ctx context.Context) error
	// Refresh reads nodes, addresses and power states from the target.
	Refresh(ctx context.Context) error
}

// VMSwitch powers VMs on and off and moves them.
type VMSwitch interface {
	On(ctx context.Context, vms []target.VM) error
	Off(ctx context.Context, vms []target.VM) error
	// Reach returns nil if the VM's agent answers.
	Reach(ctx context.Context, vm target.VM) error
	// Move migrates running VMs to a node.
	Move(ctx context.Context, vms []target.VM, nodeID string) error
}

// NodeSwitch powers nodes on and off, by their index in the plan.
type NodeSwitch interface {
	Off(ctx context.Context, index int) error
	Shutdown(ctx context.Context, index int) error
	On(ctx context.Context, index int) error
	State(ctx context.Context, index int) (target.PowerState, error)
	// SwitchedOff returns the indexes of nodes that this run powered off and has not powered on again.
	SwitchedOff() []int
}

// Loads starts workloads and waits for them. A workload has at most one run of its load and one of its prefill at a time.
type Loads interface {
	// Start prepares a load on all VMs of its group, starts it on all at one time or staggered from that time on, and returns
	// once the last VM has started. If some VM cannot be reached, it starts nothing; a VM that cannot be prepared fails alone.
	Start(ctx context.Context, spec LoadSpec) error
	// Wait waits until the load has ended, at most until timeout after its expected end; a load without a runtime is expected
	// to end at once. VMs that this run itself powered off do not fail it; others do.
	Wait(ctx context.Context, workload string, prefill bool, timeout time.Duration) error
	// Settle waits until the load is steady over all its VMs. A load that is not steady in time, or that ends before, is reported
	// as an event; the step does not fail.
	Settle(ctx context.Context, s Settling) error
	// Stop ends a load and waits for its last interval.
	Stop(ctx context.Context, workload string) error
	// Remove takes away what prefills made outside of their VMs, as planned, while these VMs exist. What it cannot remove is
	// reported as an event. Without such prefills it does nothing.
	Remove(ctx context.Context)
}

// Notes reports events of a step to users.
type Notes interface {
	// Annotate adds an annotation to charts at the current time. Outside the run phase it only logs.
	Annotate(text string)
	Log(text string)
	// Disturb reports something that casts doubt on numbers.
	Disturb(subject, text string)
	// Event records a part of the step. Phase and step are filled in.
	Event(e interval.Event)
}

// Work runs in the background of later steps.
type Work interface {
	// Go starts work that ends by itself, or when the phase ends and ctx with it.
	Go(name string, work func(ctx context.Context) error) error
}

// Collect copies the logs of agents into the bundle.
func (e *Env) Collect(ctx context.Context, vms []target.VM) error {
	if e.Logs == nil {
		e.Notes.Log("logs are not collected here")
		return nil
	}
	return e.Logs(ctx, vms)
}

// WaitFor calls check every poll until it returns true, for at most timeout.
func WaitFor(ctx context.Context, timeout, poll time.Duration, check func() bool) error {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		if check() {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return context.DeadlineExceeded
		case <-time.After(poll):
		}
	}
}

// Mark adds an annotation to charts if the scenario requests it.
func (e *Env) Mark(on bool, format string, args ...any) {
	if on {
		e.Notes.Annotate(fmt.Sprintf(format, args...))
	}
}
