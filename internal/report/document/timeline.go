package document

import (
	"cmp"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
)

// Mark is one event that is drawn on every chart.
type Mark struct {
	Number  int    `json:"number"` // counts from 1 in order of time
	AtNanos int64  `json:"at_ns"`
	EndNano int64  `json:"end_ns,omitempty"` // of a step that took time
	Label   string `json:"label"`
	Kind    string `json:"kind"` // "step", "annotation", "disturbance"
	Failed  bool   `json:"failed,omitempty"`
	StepID  int    `json:"step_id,omitempty"`
}

// Step is one step as it was planned and as it ran.
type Step struct {
	ID           int    `json:"id"`
	Phase        string `json:"phase"`
	Name         string `json:"name"`
	Subject      string `json:"subject,omitempty"`   // workload, group, VM or node
	Label        string `json:"label,omitempty"`     // what windows call it: "nodes.PowerOff 0 (2)"
	Iteration    string `json:"iteration,omitempty"` // in repetitions, outermost first: "2", "2.1"
	Text         string `json:"text,omitempty"`
	Line         int    `json:"line,omitempty"`
	PlannedNanos int64  `json:"planned_ns,omitempty"`
	Started      bool   `json:"started"`
	Ended        bool   `json:"ended"`
	FromNanos    int64  `json:"from_ns"`
	ToNanos      int64  `json:"to_ns"`
	Error        string `json:"error,omitempty"`
	Simulated    bool   `json:"simulated,omitempty"`
}

// steps joins the plan with the events. Steps that never began come last within their phase.
func steps(p *plan.Plan, events []interval.Event) []Step {
	byID := map[int]int{}
	list := []Step{}
	for _, s := range p.Steps {
		byID[s.ID] = len(list)
		list = append(list, Step{ID: s.ID, Phase: string(s.Phase), Name: s.Name, Subject: s.Subject, Label: s.Label, Line: s.Line, Iteration: s.Iteration,
			PlannedNanos: s.Duration.Nanoseconds(), Simulated: s.Simulates != ""})
	}
	for _, e := range events {
		if e.Kind != interval.EventStepStarted && e.Kind != interval.EventStepEnded {
			continue
		}
		i, known := byID[e.StepID]
		if !known || list[i].Name != e.Step {
			// The plan has no undo steps and no steps that the engine expanded.
			i = openStep(list, e)
		}
		if i < 0 {
			byID[e.StepID] = len(list)
			i = len(list)
			list = append(list, Step{ID: e.StepID, Phase: e.Phase, Name: e.Step})
		}
		list[i].observe(e)
	}
	return list
}

// openStep finds the started, not yet ended step that e belongs to, or -1.
func openStep(list []Step, e interval.Event) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].ID == e.StepID && list[i].Name == e.Step && list[i].Phase == e.Phase && !list[i].Ended {
			return i
		}
	}
	return -1
}

func (s *Step) observe(e interval.Event) {
	s.Subject = cmp.Or(s.Subject, e.Workload, e.Group, e.Subject)
	s.Label = cmp.Or(s.Label, e.Label)
	s.Simulated = s.Simulated || e.Simulate
	s.Phase = cmp.Or(s.Phase, e.Phase)
	if e.Kind == interval.EventStepStarted {
		s.Started, s.FromNanos, s.ToNanos = true, e.AtNanos, e.AtNanos
		s.Text = cmp.Or(s.Text, e.Message)
		return
	}
	s.Ended, s.ToNanos, s.Error = true, e.AtNanos, e.Error
}

// marks picks the events that every chart marks with a line: annotations, disturbances, and the steps at which windows are cut.
func marks(events []interval.Event, steps []Step) []Mark {
	list := []Mark{}
	annotated := map[int]bool{}
	for _, e := range events {
		switch e.Kind {
		case interval.EventAnnotation:
			annotated[e.StepID] = true
			list = append(list, Mark{AtNanos: e.AtNanos, Label: cmp.Or(e.Message, e.Step), Kind: "annotation", StepID: e.StepID})
		case interval.EventDisturbance, interval.EventVMStopped, interval.EventPaused, interval.EventShared,
			interval.EventPlatform:
			list = append(list, Mark{AtNanos: e.AtNanos, Label: cmp.Or(e.Message, "disturbance"), Kind: "disturbance"})
		}
	}
	for _, s := range steps {
		if s.Started && s.Label != "" && (s.ID == 0 || !annotated[s.ID]) {
			label := s.Name
			if s.Subject != "" {
				label += " " + s.Subject
			}
			if s.Iteration != "" {
				label += " #" + s.Iteration
			}
			list = append(list, Mark{AtNanos: s.FromNanos, EndNano: s.ToNanos, Label: label, Kind: "step",
				Failed: s.Error != "", StepID: s.ID})
		}
	}
	slices.SortStableFunc(list, func(a, b Mark) int { return cmp.Compare(a.AtNanos, b.AtNanos) })
	for i := range list {
		list[i].Number = i + 1
	}
	return list
}

func (s *Step) Heading() string {
	if s.Subject == "" {
		return s.Name
	}
	return s.Name + " " + s.Subject
}
