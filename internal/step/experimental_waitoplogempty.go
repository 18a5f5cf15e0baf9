package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var experimentalWaitOplogEmpty = verb.Kind{
	Name:    "experimental.WaitOplogEmpty",
	Summary: "Wait until the cluster's write cache is empty.",
	Doc:     "The name is that of Nutanix's write cache; any target that can tell whether its cache is empty offers the step.",
	Example: example.Load + `
setup:
  - experimental.WaitOplogEmpty:
      timeout: 60
` + example.Wait,
	Needs: []target.Capability{target.CapDrain},
	Waits: true,
	New:   func() verb.Step { return new(waitOplogEmpty) },
}

// drainPoll is how often the cluster's write cache is polled.
const drainPoll = time.Second

type waitOplogEmpty struct {
	Timeout time.Duration `arg:"timeout" unit:"s" scale:"timeout" default:"1200" doc:"How long it may take."`
}

func (s *waitOplogEmpty) Run(ctx context.Context, env *verb.Env) error {
	checker, ok := env.Target.(target.DrainChecker)
	if !ok {
		return errors.New("wait for an empty write cache: the target cannot tell")
	}
	var last error
	err := verb.WaitFor(ctx, s.Timeout, drainPoll, func() bool {
		empty, err := checker.WriteCacheEmpty(ctx)
		last = err
		return empty && err == nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("wait %v for an empty write cache: %w", s.Timeout, errors.Join(errors.New("it is not empty"), last))
	}
	return err
}
