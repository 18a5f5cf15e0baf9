package executor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/plan"
)

// stage is the current stage of a run. A run passes all stages from top to bottom; failure and stop skip the rest of setup
// and run, never the stages after them.
type stage string

const (
	stageIdle     stage = "idle"
	stageSetup    stage = "setup"
	stageRun      stage = "run"
	stageQuiesce  stage = "quiesce"  // loads and other background work end
	stageRestore  stage = "restore"  // nodes that this run powered off are powered on
	stageTeardown stage = "teardown" // the scenario's own clean-up
	stageSettle   stage = "settle"   // background work that teardown began ends
	stageUndo     stage = "undo"     // effects of steps are reverted, then VMs are deleted
	stageAbandon  stage = "abandon"  // second stop: everything is cancelled, no further undo
	stageEnded    stage = "ended"
)

// How a run ended.
const (
	Completed   = "completed"
	Failed      = "failed"
	Interrupted = "interrupted"
)

// undoItem is one part of undoing, in order.
type undoItem string

const (
	undoPower undoItem = "power"
	undoSteps undoItem = "steps"
	undoVMs   undoItem = "vms"
)

// state of a run. It is a value: next returns a new one and changes nothing.
type state struct {
	Stage      stage
	Next       int    // index into steps of the next to run
	Running    int    // id of the step that runs, 0: none
	Background []int  // handles of loads and other work that runs in parallel with steps, sorted
	LastHandle int    // handles count from 1
	Undoing    string // undoItem under way, "": none
	Ended      string // Completed, Failed or Interrupted, once it is decided
	Reason     string // why, one sentence
	Refused    bool   // because something was refused for safety
	Problems   []string
	StopLevel  int
	GaveUp     bool // something that was cancelled never returned
	steps      []stepRef
}

// stepRef is the part of a step that the machine needs.
type stepRef struct {
	ID    int
	Phase plan.Phase
	Name  string
}

// outcome is something that happened. One of its fields is set.
type outcome struct {
	Start    bool
	StepDone int  // id of the step; Err is set if it failed
	Refused  bool // it failed because it was refused for safety; of StepDone and Finished
	Wanted   string
	Finished int // handle of background work that ended; Fatal if the run cannot continue without it
	UndoDone undoItem
	Stop     int    // level 1 or 2
	Guard    string // why the load must stop
	Journal  bool   // the journal can no longer be written
	Grace    bool   // the grace period of canceled work is over
	Err      string
	Fatal    bool
	reply    chan<- int // of Wanted: receives the handle, or 0 if no new work may begin
}

// action is something to do. Kind selects the action; the other fields are its arguments.
type action struct {
	Kind   actionKind
	Step   int
	Phase  plan.Phase
	Undo   undoItem
	Handle int
	Err    string
	reply  chan<- int
}

type actionKind string

const (
	actBeginPhase     actionKind = "begin-phase"
	actEndPhase       actionKind = "end-phase"
	actRunStep        actionKind = "run-step"
	actCancelStep     actionKind = "cancel-step"
	actGrant          actionKind = "grant" // background work may begin
	actRefuse         actionKind = "refuse"
	actStopBackground actionKind = "stop-background"
	actUndo           actionKind = "undo"
	actCancelUndo     actionKind = "cancel-undo"
	actStartGrace     actionKind = "start-grace"
	actAbandoned      actionKind = "abandoned" // journal the remaining changes
	actFinish         actionKind = "finish"
)

// next is the whole machine: it takes a state and an outcome and returns the new state and the actions to perform.
func (s state) next(o outcome) (state, []action) {
	s.Background = slices.Clone(s.Background)
	s.Problems = slices.Clone(s.Problems)
	var do []action
	switch {
	case o.Start:
		s.Stage = stageSetup
		do = append(do, action{Kind: actBeginPhase, Phase: plan.Setup})
	case o.StepDone != 0:
		s, do = s.stepDone(o)
	case o.Wanted != "":
		return s.wanted(o)
	case o.Finished != 0:
		s, do = s.finished(o)
	case o.UndoDone != "":
		s.Undoing = ""
		s = s.problem("undo "+string(o.UndoDone), o.Err)
		if s.Stage == stageRestore {
			s.Stage = stageTeardown
			do = append(do, action{Kind: actBeginPhase, Phase: plan.Teardown})
		}
	case o.Stop != 0:
		s, do = s.stop(o.Stop)
	case o.Guard != "":
		s, do = s.fail(o.Guard)
	case o.Journal:
		s = s.problem("journal", o.Err)
		s, do = s.fail("the journal cannot be written: " + o.Err)
	case o.Grace:
		return s.graceOver(o)
	}
	return s.advance(o, do)
}

// graceOver continues without canceled work that did not return: a load that hangs must not block undo.
func (s state) graceOver(o outcome) (state, []action) {
	switch s.Stage {
	case stageAbandon:
		return s.finish(nil)
	case stageQuiesce, stageSettle:
		if len(s.Background) > 0 {
			s = s.problem("background", fmt.Sprintf("%d loads did not return after they were stopped", len(s.Background)))
			s.Background, s.GaveUp = nil, true
		}
		return s.advance(o, nil)
	}
	return s, nil
}

func (s state) stepDone(o outcome) (state, []action) {
	if o.StepDone != s.Running {
		return s, nil // the run has already given up waiting for it
	}
	s.Running = 0
	if o.Err == "" {
		return s, nil
	}
	name := s.nameOf(o.StepDone)
	switch s.Stage {
	case stageSetup, stageRun:
		s.Refused = o.Refused
		return s.fail(name + ": " + o.Err)
	case stageTeardown:
		s = s.problem(name, o.Err)
	}
	return s, nil // cancelled by a stop, which causes its error
}

func (s state) wanted(o outcome) (state, []action) {
	accepts := s.Running != 0 && (s.Stage == stageSetup || s.Stage == stageRun || s.Stage == stageTeardown)
	if !accepts {
		return s, []action{{Kind: actRefuse, reply: o.reply}}
	}
	s.LastHandle++
	s.Background = append(s.Background, s.LastHandle)
	return s, []action{{Kind: actGrant, Handle: s.LastHandle, reply: o.reply}}
}

func (s state) finished(o outcome) (state, []action) {
	s.Background = slices.DeleteFunc(s.Background, func(h int) bool { return h == o.Finished })
	if o.Err == "" {
		return s, nil
	}
	if o.Fatal && (s.Stage == stageSetup || s.Stage == stageRun) {
		s.Refused = o.Refused
		return s.fail(o.Err)
	}
	return s.problem("background", o.Err), nil
}

// fail ends setup and run because of reason; in later stages it has no effect.
func (s state) fail(reason string) (state, []action) {
	if s.Stage != stageSetup && s.Stage != stageRun {
		return s, nil
	}
	return s.leave(Failed, reason)
}

func (s state) stop(level int) (state, []action) {
	if level <= s.StopLevel {
		return s, nil
	}
	s.StopLevel = level
	if level >= 2 && s.Stage != stageEnded && s.Stage != stageAbandon {
		return s.abandon()
	}
	if s.Stage != stageSetup && s.Stage != stageRun {
		return s, nil // already undoing
	}
	return s.leave(Interrupted, "stopped by the user")
}

// leave cancels setup or run and continues with undo.
func (s state) leave(ended, reason string) (state, []action) {
	do := []action{}
	if s.Running != 0 {
		do = append(do, action{Kind: actCancelStep, Step: s.Running, Err: reason})
	}
	do = append(do, action{Kind: actEndPhase, Phase: plan.Phase(s.Stage), Err: reason})
	s.Ended, s.Reason, s.Stage = ended, reason, stageQuiesce
	return s, append(do, s.stopBackground()...)
}

func (s state) stopBackground() []action {
	if len(s.Background) == 0 {
		return nil
	}
	return []action{{Kind: actStopBackground}, {Kind: actStartGrace}}
}

func (s state) abandon() (state, []action) {
	var do []action
	if s.Ended == "" {
		s.Ended, s.Reason = Interrupted, "stopped by the user"
	}
	if s.Running != 0 {
		do = append(do, action{Kind: actCancelStep, Step: s.Running, Err: "cleanup skipped by the user"})
	}
	if len(s.Background) > 0 {
		do = append(do, action{Kind: actStopBackground})
	}
	if s.Undoing != "" {
		do = append(do, action{Kind: actCancelUndo, Undo: undoItem(s.Undoing)})
	}
	s.Stage = stageAbandon
	return s.problem("undo", "cleanup skipped by the user"), append(do, action{Kind: actStartGrace})
}

// advance moves from stage to stage until it has to wait for an outcome.
func (s state) advance(o outcome, do []action) (state, []action) {
	for {
		before := s.Stage
		switch {
		case s.Running != 0:
			return s, do
		case s.Stage == stageSetup || s.Stage == stageRun || s.Stage == stageTeardown:
			var started bool
			if s, do, started = s.nextStep(do); started {
				return s, do
			}
		case (s.Stage == stageQuiesce || s.Stage == stageSettle || s.Stage == stageAbandon) && len(s.Background) > 0:
			return s, do
		case s.Stage == stageQuiesce:
			s.Stage = stageRestore
			return s.undo(undoPower, do)
		case s.Stage == stageSettle:
			s.Stage = stageUndo
			return s.undo(undoSteps, do)
		case s.Stage == stageUndo && s.Undoing == "" && o.UndoDone == undoSteps:
			return s.undo(undoVMs, do)
		case s.Stage == stageUndo && s.Undoing == "" && o.UndoDone == undoVMs:
			return s.finish(do)
		case s.Stage == stageAbandon && s.Undoing == "":
			return s.finish(do)
		}
		if s.Stage == before {
			return s, do
		}
	}
}

// nextStep starts the next step of the current phase, or leaves the phase after its last step.
func (s state) nextStep(do []action) (state, []action, bool) {
	phase := plan.Phase(s.Stage)
	for s.Next < len(s.steps) && phaseOrder(s.steps[s.Next].Phase) < phaseOrder(phase) {
		s.Next++ // left over from a phase that was cancelled
	}
	if s.Next < len(s.steps) && s.steps[s.Next].Phase == phase {
		s.Running = s.steps[s.Next].ID
		s.Next++
		return s, append(do, action{Kind: actRunStep, Step: s.Running}), true
	}
	do = append(do, action{Kind: actEndPhase, Phase: phase})
	switch s.Stage {
	case stageSetup:
		s.Stage = stageRun
		do = append(do, action{Kind: actBeginPhase, Phase: plan.Run})
	case stageRun:
		s.Ended, s.Stage = Completed, stageQuiesce
		do = append(do, s.stopBackground()...)
	case stageTeardown:
		s.Stage = stageSettle
		do = append(do, s.stopBackground()...)
	}
	return s, do, false
}

func phaseOrder(p plan.Phase) int {
	return slices.Index([]plan.Phase{plan.Setup, plan.Run, plan.Teardown}, p)
}

func (s state) undo(item undoItem, do []action) (state, []action) {
	s.Undoing = string(item)
	return s, append(do, action{Kind: actUndo, Undo: item})
}

func (s state) finish(do []action) (state, []action) {
	if s.Stage == stageAbandon {
		do = append(do, action{Kind: actAbandoned})
	}
	s.Stage = stageEnded
	return s, append(do, action{Kind: actFinish})
}

func (s state) problem(where, err string) state {
	if err != "" {
		s.Problems = append(s.Problems, where+": "+err)
	}
	return s
}

func (s state) nameOf(id int) string {
	for _, ref := range s.steps {
		if ref.ID == id {
			return ref.Name
		}
	}
	return fmt.Sprintf("step %d", id)
}

// String prints the variable fields on one line, for traces.
func (s state) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stage=%s", s.Stage)
	if s.Running != 0 {
		fmt.Fprintf(&b, " running=%d", s.Running)
	}
	if len(s.Background) > 0 {
		fmt.Fprintf(&b, " background=%v", s.Background)
	}
	if s.Undoing != "" {
		fmt.Fprintf(&b, " undoing=%s", s.Undoing)
	}
	if s.Ended != "" {
		fmt.Fprintf(&b, " ended=%s", s.Ended)
	}
	if s.Reason != "" {
		fmt.Fprintf(&b, " reason=%q", s.Reason)
	}
	return b.String()
}

// String prints an action for traces.
func (a action) String() string {
	text := string(a.Kind)
	switch {
	case a.Step != 0:
		text += fmt.Sprintf(" %d", a.Step)
	case a.Phase != "":
		text += " " + string(a.Phase)
	case a.Undo != "":
		text += " " + string(a.Undo)
	case a.Handle != 0:
		text += fmt.Sprintf(" %d", a.Handle)
	}
	if a.Err != "" {
		text += fmt.Sprintf(" (%s)", a.Err)
	}
	return text
}
