package load

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
)

// LocalRunner runs workloads in this process.
type LocalRunner struct {
	Generators map[string]Generator // by Workload.Generator
}

// Run prepares and runs w.
func (r LocalRunner) Run(ctx context.Context, w Workload, sink Sink) error {
	generator, ok := r.Generators[w.Generator]
	if !ok {
		return &diag.Error{
			Code:    "unknown-generator",
			Message: fmt.Sprintf("run workload %q: no generator %q here", w.Name, w.Generator),
			Hint:    "one of " + strings.Join(slices.Sorted(maps.Keys(r.Generators)), ", "),
			Exit:    diag.ExitUnavailable,
		}
	}
	instance, err := generator.Prepare(ctx, w)
	if err != nil {
		return err
	}
	err = instance.Run(ctx, sink)
	if closeErr := instance.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Describer is implemented by Instances that know more than their Plan did about what drives the load: the back end
// that this machine allowed, buffered access where a file system refused direct access.
type Describer interface {
	// Engine returns what Plan.Engine is for, as it came out.
	Engine() interval.Engine
}
