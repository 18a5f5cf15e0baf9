package interval

import "slices"

// EventKind is the kind of an Event.
type EventKind string

const (
	EventRunStarted    EventKind = "run-started"
	EventRunEnded      EventKind = "run-ended"
	EventPhaseStarted  EventKind = "phase-started" // setup, run, teardown, undo
	EventPhaseEnded    EventKind = "phase-ended"
	EventStepStarted   EventKind = "step-started"
	EventStepEnded     EventKind = "step-ended"
	EventWorkloadStart EventKind = "workload-started"
	EventWorkloadEnd   EventKind = "workload-ended"
	EventAnnotation    EventKind = "annotation" // drawn on charts
	EventLog           EventKind = "log"
	EventDisturbance   EventKind = "disturbance"   // something that casts doubt on numbers: a stall, a lost agent
	EventPlaced        EventKind = "vm-placed"     // VM Subject of Group is on node Node from now on
	EventClockJump     EventKind = "clock-jump"    // the clock of VM Subject, or the controller's, jumped by SpanNanos
	EventStarts        EventKind = "load-starts"   // all VMs of Workload have started, within SpanNanos of each other
	EventAgentSilent   EventKind = "agent-silent"  // the connection to the agent of VM Subject was lost; it is retried
	EventAgentBack     EventKind = "agent-back"    // the agent of VM Subject answers again, SpanNanos later
	EventSourceSilent  EventKind = "source-silent" // source Subject of the target file cannot be read; Error is the reason
	EventSourceBack    EventKind = "source-back"   // it answers again, SpanNanos later
	EventVMStopped     EventKind = "vm-stopped"    // VM Subject stopped, and the run did not cause it; Error is the reason
	EventEngine        EventKind = "load-engine"   // Engine drives the load on VM Subject and differs from the plan

	// A step waited until Workload was steady, for the SpanNanos before; Error is why it was not after the longest time.
	EventSteady EventKind = "load-steady"

	// Message is a task of a playbook that began, or that ended on Subject after the SpanNanos before; Error is why it failed.
	EventTaskStarted EventKind = "task-started"
	EventTaskEnded   EventKind = "task-ended"

	// EventRemoved: VM Subject removed what the prefill of Workload had made outside of the VM.
	EventRemoved EventKind = "data-removed"

	// EventPlatform: the platform reported Platform about VM or node Subject, with Message in its own words. A VM is on Node from
	// then on, and was on From before, where the platform says so.
	EventPlatform EventKind = "platform-event"

	EventPaused EventKind = "controller-paused" // the controller was paused for the SpanNanos before
	EventShared EventKind = "machine-shared"    // run Subject uses the same machine from now on
	EventAlone  EventKind = "machine-left"      // it no longer does
	EventUsage  EventKind = "machine-usage"     // Usage of the controller's machine: before the run, and in its run phase

	// Operation began on Subject, or on Count VMs with one call; the end has the same OperationID. Its duration is the
	// difference of the two times. For an end that is detected by polling, SpanNanos is the time since the previous poll.
	EventOperationStarted EventKind = "operation-started"
	EventOperationEnded   EventKind = "operation-ended"
)

// Kinds of platform events, see Event.Platform.
const (
	PlatformRestarted = "vm-restarted"
	PlatformMoved     = "vm-moved"
	PlatformStopped   = "vm-stopped"
	PlatformNodeDown  = "node-down"
	PlatformNodeUp    = "node-up"
	PlatformAlarm     = "alarm"
)

// Usage is the usage of a machine by everything on it, as shares from 0 to 1.
type Usage struct {
	// CPUWaiting and IOWaiting are the shares of the last minute in which a task waited for a CPU or for I/O.
	CPUWaiting float64 `json:"cpu_waiting,omitempty"`
	IOWaiting  float64 `json:"io_waiting,omitempty"`
	// Busy is the share of CPU time used since the event before, for each NUMA node.
	Busy []float64 `json:"numa_busy,omitempty"`
}

// Controller is the Subject of events about the machine that drives the run.
const Controller = "controller"

// Event is an occurrence at a point on the run's time axis.
type Event struct {
	AtNanos int64     `json:"at_ns"`
	Kind    EventKind `json:"kind"`
	Phase   string    `json:"phase,omitempty"`
	Step    string    `json:"step,omitempty"`    // dotted name: "workload.Start"
	StepID  int       `json:"step_id,omitempty"` // position in the plan, from 1
	// Iteration counts from 1 in the repetitions around the step, outermost first: "2", "2.1".
	Iteration string `json:"iteration,omitempty"`
	// Label is the name of a step of the run phase in window names: "OLTP", "nodes.PowerOff 0 (2)". It is the same on every
	// target. Steps that only wait or contain others have none: no window is cut at them.
	Label    string  `json:"label,omitempty"`
	Workload string  `json:"workload,omitempty"` // for workload events and steps on one workload
	Instance int     `json:"instance,omitempty"` // of the workload
	Prefill  bool    `json:"prefill,omitempty"`  // the workload only fills disks, by its job file
	Group    string  `json:"group,omitempty"`    // for steps on one VM group
	Subject  string  `json:"subject,omitempty"`  // VM or node
	Node     string  `json:"node,omitempty"`     // id of the node where Subject is
	From     string  `json:"from,omitempty"`     // id of the node where it was before
	Engine   *Engine `json:"engine,omitempty"`
	Usage    *Usage  `json:"usage,omitempty"`
	Message  string  `json:"message,omitempty"`   // a sentence for a reader
	Error    string  `json:"error,omitempty"`     // set on *-ended events when it failed
	Simulate bool    `json:"simulated,omitempty"` // only simulated on this target
	// Platform is the kind of a platform event: PlatformRestarted, …
	Platform string `json:"platform,omitempty"`
	// Operation, of an operation event; OperationID counts them from 1, and Part is the id of the call that it is part of.
	Operation   Operation `json:"operation,omitempty"`
	OperationID int       `json:"operation_id,omitempty"`
	Part        int       `json:"operation_of,omitempty"`
	Count       int       `json:"vms,omitempty"`
	// SpanNanos is a duration or distance whose meaning depends on the kind.
	SpanNanos int64 `json:"span_ns,omitempty"`
	// UncertainNanos is how much earlier than AtNanos it may have happened, if the time is not known exactly.
	UncertainNanos int64 `json:"uncertain_ns,omitempty"`
	// Unasked marks that no step moved Subject to Node; it happened within the SpanNanos before.
	Unasked bool `json:"unasked,omitempty"`
	// AfterCut marks, in addition to Unasked, that the run had powered off the node of Subject: the platform restarted it
	// elsewhere, or moved it away or back.
	AfterCut bool `json:"after_cut,omitempty"`
	// Canceled is why a step was cancelled before its end: "stopped by the user".
	Canceled string `json:"canceled,omitempty"`
	// Stopped marks the end of a workload that a step stopped.
	Stopped bool `json:"stopped,omitempty"`
	// CutByRun marks the annotation that Workload ended on VM Subject because the run itself powered it off.
	CutByRun bool `json:"cut_by_run,omitempty"`
}

// WithTexts returns e with every text for readers changed. Secrets and names are hidden with it, so that a field
// added here cannot be forgotten there.
func (e Event) WithTexts(change func(string) string) Event {
	e.Label, e.Message, e.Error, e.Canceled = change(e.Label), change(e.Message), change(e.Error), change(e.Canceled)
	if e.Engine != nil {
		engine := *e.Engine
		if engine.Fallback != nil {
			engine.Fallback = &Fallback{From: engine.Fallback.From, Why: change(engine.Fallback.Why)}
		}
		engine.Notes = slices.Clone(engine.Notes)
		for i := range engine.Notes {
			engine.Notes[i].Text = change(engine.Notes[i].Text)
		}
		e.Engine = &engine
	}
	return e
}
