package compare

import (
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/textio"
)

// Alignment names the event that is zero on the common axis.
func (c *Comparison) Alignment() string {
	if c.AlignAt == "" {
		return "the start of the run phase"
	}
	return c.AlignAt
}

// zeroOf returns the time of a run that is zero on the common axis.
func zeroOf(d *document.Document, event string) (int64, error) {
	if event == "" {
		for _, p := range d.Phases {
			if p.Name == "run" {
				return p.FromNanos, nil
			}
		}
		return 0, nil
	}
	var names, steps []string
	called := map[int]string{} // steps by the name that is the same on every target
	for _, s := range d.Steps {
		if s.Label == "" || !s.Started || s.Phase != "run" {
			continue
		}
		if strings.EqualFold(s.Label, event) {
			return s.FromNanos, nil
		}
		called[s.ID] = s.Label
	}
	for _, m := range d.Marks {
		if name := called[m.StepID]; m.Kind == "step" && name != "" {
			names = append(names, name)
		} else {
			names = append(names, m.Label)
		}
		if strings.EqualFold(m.Label, event) {
			return m.AtNanos, nil
		}
	}
	// A step without a subject names its first occurrence.
	for _, s := range d.Steps {
		if !s.Started || s.Phase != "run" {
			continue
		}
		if strings.EqualFold(s.Name, event) {
			return s.FromNanos, nil
		}
		steps = append(steps, s.Name)
	}
	return 0, &diag.Error{Code: "compare-event", Exit: diag.ExitUsage,
		Message: fmt.Sprintf("align run %q at %q: no such event", d.Run, event), Hint: alignHint(event, names, steps)}
}

func alignHint(event string, names, steps []string) string {
	if near := diag.Nearest(event, append(steps, names...)); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(names) == 0 {
		return "this run has no events to align at"
	}
	return "events: " + textio.JoinAnd(names)
}
