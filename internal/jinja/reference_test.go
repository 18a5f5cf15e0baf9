package jinja_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/braggdev/bragg/internal/jinja"
)

type referenceCase struct {
	Template string  `json:"template"`
	Output   *string `json:"output"`
	Error    string  `json:"error"`
}

// different lists templates whose outcome is meant to differ from Jinja2's, with the reason.
var different = map[string]string{
	`{{ 'x' if off }}`: "a missing else is the empty text, as in X-Ray, whose templates are not strict",
}

// What Jinja2 itself renders was recorded by testdata/reference.py.
func TestRendersLikeJinja2(t *testing.T) {
	text, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var reference struct {
		Vars  map[string]any
		Cases []referenceCase
	}
	if err := json.Unmarshal(text, &reference); err != nil {
		t.Fatal(err)
	}
	for name, v := range reference.Vars {
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			reference.Vars[name] = int64(f)
		}
	}
	for _, c := range reference.Cases {
		if different[c.Template] != "" {
			continue
		}
		out, faults := jinja.Render(c.Template, reference.Vars, jinja.Limits{})
		switch {
		case c.Output == nil && len(faults) == 0:
			t.Errorf("%q: rendered %q, want an error (%s)", c.Template, out.Text, c.Error)
		case c.Output != nil && len(faults) > 0:
			t.Errorf("%q: %s (at %d), want %q", c.Template, faults[0].Message, faults[0].Offset, *c.Output)
		case c.Output != nil && out.Text != *c.Output:
			t.Errorf("%q: rendered %q, want %q", c.Template, out.Text, *c.Output)
		}
	}
}
