package run

import (
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario"
)

// StepTime is when a step begins and how long it takes, from the start of setup.
type StepTime struct {
	Call          scenario.Call
	Phase         Phase
	Start, Length time.Duration
}

// Outline plays the steps of a scenario on an imagined target, as the estimate of a plan does, and returns the time of each
// in their order; a repetition has its steps as often as they run. What the target or the size of disks decides takes no time
// here, so all times are lower bounds. Steps that are wrong are left out.
func Outline(sc *scenario.Scenario, catalog Catalog) []StepTime {
	c := imagined(sc, catalog, imaginedNodes[0])
	c.bindAll(true)
	var ignored diag.List
	v := c.newView(&ignored)
	var out []StepTime
	var late []bool
	lengths := c.walk(v, 1, func(i int, _ Step, skipped bool) {
		b := c.steps[i]
		out = append(out, StepTime{Call: b.call, Phase: b.phase, Start: v.clock})
		late = append(late, skipped)
	})
	kept := out[:0]
	for i := range out {
		if out[i].Length = lengths[i]; !late[i] {
			kept = append(kept, out[i])
		}
	}
	return kept
}
