package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fleet"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
)

// Config is what an Engine needs in addition to the plan.
type Config struct {
	Target  target.Target
	Journal *control.Journal // its header holds the tag
	// Runner reaches the agent of a powered-on VM. It is called for every start of a load and whenever a step checks
	// whether the VM answers; it may return a cached connection.
	Runner func(ctx context.Context, vm target.VM) (load.Runner, error)
	// Gone is called after this run has powered off or removed a VM, so that callers stop waiting for its agent. May be
	// nil.
	Gone func(vm target.VM)
	// Intervals receives the intervals of loads, from several goroutines at once.
	Intervals load.Sink
	// Events receives events one at a time, in the order in which they become known. The time of an event may be in the
	// past.
	Events func(interval.Event)
	// Zero is the start of the run's time axis, with its monotonic reading.
	Zero time.Time
	// Dir is a folder for files of the scenario's programs; it stays with the run.
	Dir string
	// Mask hides the secrets of the scenario in texts; may be nil.
	Mask func(text string) string
	// Collect copies the logs of agents into the bundle; may be nil.
	Collect func(ctx context.Context, vms []target.VM) error
	// Failpoint makes named places fail in tests; nil otherwise.
	Failpoint func(name string) error
	// TeardownDeadline bounds each step of teardown beyond its estimate; UndoDeadline each part of undoing. 0: ten minutes.
	TeardownDeadline time.Duration
	UndoDeadline     time.Duration
}

func (c *Config) fail() control.Failpoint { return c.Failpoint }

const (
	teardownDeadlineDefault = 10 * time.Minute
	undoDeadlineDefault     = 10 * time.Minute
	// graceLength is how long canceled work may take to return before the run continues without it.
	graceLength = 30 * time.Second
)

// Validate reports all missing fields.
func (c *Config) Validate() error {
	var errs []error
	missing := func(absent bool, name string) {
		if absent {
			errs = append(errs, fmt.Errorf("engine config lacks %s", name))
		}
	}
	missing(c.Target == nil, "Target")
	missing(c.Journal == nil, "Journal")
	missing(c.Runner == nil, "Runner")
	missing(c.Intervals == nil, "Intervals")
	missing(c.Events == nil, "Events")
	missing(c.Zero.IsZero(), "Zero")
	return errors.Join(errs...)
}

// Outcome is the outcome of a run.
type Outcome struct {
	Ended  string // Completed, Failed or Interrupted
	Reason string // why it did not complete, one sentence
	// Refused: it did not complete because a step was refused for safety, such as a power cut.
	Refused bool
	// Problems are failures after the run phase: of teardown, of undo, of loads that no step waited for.
	Problems []string
	// Left lists the outside changes that the run could not undo, or did not undo by request.
	Left []control.Thing
}

// Engine executes one plan once.
type Engine struct {
	plan *planner.Plan
	cfg  Config

	outcomes chan outcome
	finished chan struct{} // closed when the loop has ended
	fleet    *fleet.Fleet
	nodes    *fleet.Nodes
	loads    *loads
	repeats  repeats
	progress progress
	work     sync.WaitGroup // steps, loads and background work

	background     context.Context // of loads and background work
	stopBackground context.CancelFunc

	emitMu sync.Mutex
	phase  plan.Phase // guarded by emitMu: loads name it in their events
}

// New prepares an engine. Nothing happens before Run.
func New(plan *planner.Plan, cfg Config) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.TeardownDeadline == 0 {
		cfg.TeardownDeadline = teardownDeadlineDefault
	}
	if cfg.UndoDeadline == 0 {
		cfg.UndoDeadline = undoDeadlineDefault
	}
	e := &Engine{plan: plan, cfg: cfg, outcomes: make(chan outcome), finished: make(chan struct{})}
	e.fleet = fleet.New(fleet.Config{Plan: &plan.Plan, Target: cfg.Target, Journal: cfg.Journal, Runner: cfg.Runner, Gone: cfg.Gone,
		Placed: e.placed, Strayed: e.strayed, Reported: e.reported, Deaf: e.deaf, Failpoint: cfg.fail(), Emit: func(ev interval.Event, at time.Time) {
			ev.Phase = e.phaseName()
			e.emitAt(ev, at)
		}})
	e.cfg.Runner = e.fleet.Runner
	e.nodes = e.fleet.Nodes(plan.Target.Nodes)
	if l, ok := cfg.Target.(target.NodeLimiter); ok {
		l.LimitNodesOff(plan.NodesOffMax())
	}
	e.progress.begun, e.progress.ended = map[int]time.Time{}, map[int]bool{}
	e.loads = &loads{engine: e, latest: map[string]*loadRun{}, count: map[string]int{}}
	return e, nil
}

// StopLevel is how forcefully to stop.
type StopLevel int

const (
	// StopAndUndo ends setup or run, then undoes everything.
	StopAndUndo StopLevel = 1
	// StopOnly ends everything, including undo; remaining changes stay in the journal.
	StopOnly StopLevel = 2
)

// Stop requests the end of the run. It returns at once and may be called at any time from any goroutine; a level that is
// not above the previous one has no effect.
func (e *Engine) Stop(level StopLevel) { go e.post(outcome{Stop: int(level)}) }

// Guard ends setup or run because of reason ("space ran out"), then undoes everything. Like Stop it returns at once.
func (e *Engine) Guard(reason string) { go e.post(outcome{Guard: reason}) }

// post passes an outcome to the loop; after the end it does nothing.
func (e *Engine) post(o outcome) {
	select {
	case e.outcomes <- o:
	case <-e.finished:
	}
}

// want requests a handle for background work from the machine; 0 means refused.
func (e *Engine) want(name string) int {
	reply := make(chan int, 1)
	e.post(outcome{Wanted: name, reply: reply})
	select {
	case handle := <-reply:
		return handle
	case <-e.finished:
		return 0
	}
}

// emit stamps an event with the current time and delivers it. The lock keeps such events in the order of their times;
// events of emitAt may arrive after later ones.
func (e *Engine) emit(ev interval.Event) { e.emitAt(ev, time.Time{}) }

// emitAt delivers an event for a time that may be in the past; the zero time is now.
func (e *Engine) emitAt(ev interval.Event, at time.Time) {
	e.emitMu.Lock()
	defer e.emitMu.Unlock()
	if at.IsZero() {
		at = time.Now()
	}
	ev.AtNanos = max(0, at.Sub(e.cfg.Zero).Nanoseconds())
	e.cfg.Events(ev)
}

// placed reports the new node of a VM.
func (e *Engine) placed(vm target.VM) {
	e.emit(interval.Event{Kind: interval.EventPlaced, Phase: e.phaseName(), Group: vm.Group, Subject: vm.Name, Node: vm.NodeID})
}

func (e *Engine) phaseName() string {
	e.emitMu.Lock()
	defer e.emitMu.Unlock()
	return string(e.phase)
}

func (e *Engine) setPhase(p plan.Phase) {
	e.emitMu.Lock()
	defer e.emitMu.Unlock()
	e.phase = p
}

// strayed reports that a VM has moved although no step moved it.
func (e *Engine) strayed(s fleet.Stray) {
	moved := interval.Event{Kind: interval.EventDisturbance, Phase: e.phaseName(), Group: s.VM.Group, Subject: s.VM.Name,
		Message: fmt.Sprintf("%s is on %s and no longer on %s, and no step moved it", s.VM.Name, e.nodeName(s.VM.NodeID), e.nodeName(s.From))}
	if s.AfterCut() {
		moved.Kind = interval.EventAnnotation
		moved.Message = fmt.Sprintf("%s is on %s and no longer on %s: the platform moved it, since this run took a node that it was on out of use",
			s.VM.Name, e.nodeName(s.VM.NodeID), e.nodeName(s.From))
	}
	e.emit(interval.Event{Kind: interval.EventPlaced, Phase: e.phaseName(), Group: s.VM.Group, Subject: s.VM.Name, Node: s.VM.NodeID,
		From: s.From, SpanNanos: s.Ago.Nanoseconds(), Unasked: true, AfterCut: s.AfterCut()})
	e.emit(moved)
}

// reported puts an event of the platform on the run's time axis.
func (e *Engine) reported(p target.PlatformEvent) {
	ev := interval.Event{Kind: interval.EventPlatform, Platform: string(p.Kind), Phase: e.phaseName(), Subject: p.VM, Node: p.NodeID, From: p.From,
		Message: textio.Line(p.Text)}
	for _, vm := range e.fleet.Of("") {
		if vm.Name == p.VM {
			ev.Group = vm.Group
		}
	}
	if ev.Subject == "" && p.NodeID != "" {
		ev.Subject = e.nodeName(p.NodeID)
	}
	e.emitAt(ev, p.At)
}

// deaf notes that the platform's own events are missing from the record.
func (e *Engine) deaf(err error) {
	e.emit(interval.Event{Kind: interval.EventLog, Phase: e.phaseName(), Message: "the platform's own events are not recorded: " + diag.Sentence(err)})
}

func (e *Engine) nodeName(id string) string {
	for _, n := range e.plan.Target.Nodes {
		if n.ID == id {
			return n.Name
		}
	}
	return id
}

// PowerCuts returns how often this run has cut the power of a VM, or was about to. A caller that finds the VM without
// power uses it to distinguish intended power cuts from failures.
func (e *Engine) PowerCuts(vm string) int { return e.fleet.PowerCutsOf(vm) }
