package report_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/report/document"
)

// TestAlignAtPortableNames: a step is found by the name that it has on every target, and offered by it.
func TestAlignAtPortableNames(t *testing.T) {
	name := func() *document.Run {
		run := exampleRun()
		for i, e := range run.Events {
			if e.Step == "nodes.PowerOff" {
				run.Events[i].Label = "nodes.PowerOff 2"
			}
		}
		return run
	}
	c, err := compare.Runs([]*document.Run{name(), name()}, compare.Options{AlignAt: "nodes.PowerOff 2"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Runs[0].ZeroNanos == 0 || c.Runs[0].ZeroNanos != c.Runs[1].ZeroNanos {
		t.Errorf("zeros %d and %d", c.Runs[0].ZeroNanos, c.Runs[1].ZeroNanos)
	}
	_, err = compare.Runs([]*document.Run{name(), name()}, compare.Options{AlignAt: "nothing like it"})
	var e *diag.Error
	if !errors.As(err, &e) || !strings.Contains(e.Hint, "nodes.PowerOff 2") {
		t.Errorf("another event: %v", err)
	}
}
