package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var OobConfigured = verb.Kind{
	Name:    "check.OobConfigured",
	Summary: "Check that every node has a BMC.",
	Doc:     "The target file says so; the plan is refused when one lacks it.",
	Example: example.Idle + `setup:
  - check.OobConfigured: {}
` + example.Wait,
	Needs: []target.Capability{target.CapNodePower},
	New:   func() verb.Step { return new(oobConfigured) },
}

type oobConfigured struct {
	Annotate bool `arg:"annotate" default:"true" doc:"Mark the moment on charts."`
}

func (s *oobConfigured) Check(v *verb.View, problems *verb.Problems) {
	var without []string
	for _, n := range v.Inventory.Nodes {
		if !n.HasBMC {
			without = append(without, n.Name)
		}
	}
	if len(without) > 0 {
		problems.Hint("", "lacks-capability", "add the BMCs to the target file",
			fmt.Sprintf("%d nodes have no BMC: %s", len(without), strings.Join(without, ", ")))
	}
}

// Run does nothing, because Check has refused nodes without a BMC.
func (s *oobConfigured) Run(_ context.Context, env *verb.Env) error {
	env.Mark(s.Annotate, "Every node has a BMC")
	return nil
}
