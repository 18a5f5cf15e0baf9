package executor

import (
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
)

// notes emits events of one step.
type notes struct {
	engine *Engine
	step   plan.Step
}

func (n notes) event(kind interval.EventKind, text string) interval.Event {
	return interval.Event{Kind: kind, Phase: string(n.step.Phase), Step: n.step.Name, StepID: n.step.ID,
		Group: n.step.Group, Workload: n.step.Workload, Message: text}
}

func (n notes) Annotate(text string) {
	kind := interval.EventAnnotation
	if n.step.Phase != plan.Run {
		kind = interval.EventLog
	}
	n.engine.emit(n.event(kind, text))
}

func (n notes) Event(e interval.Event) {
	of := n.event(e.Kind, e.Message)
	e.Phase, e.Step, e.StepID = of.Phase, of.Step, of.StepID
	n.engine.emit(e)
}

func (n notes) Log(text string) { n.engine.emit(n.event(interval.EventLog, text)) }

func (n notes) Disturb(subject, text string) {
	ev := n.event(interval.EventDisturbance, text)
	ev.Subject = subject
	n.engine.emit(ev)
}
