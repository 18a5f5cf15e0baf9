package step_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/lint"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/step"
	"github.com/braggdev/bragg/internal/verb"
)

// newcomers are steps that nothing outside this file knows.
func newcomers() []verb.Kind {
	return []verb.Kind{
		{Name: "burst.Begin", New: func() verb.Step { return new(burst) }},
		{Name: "burst.End", New: func() verb.Step { return new(burstEnd) }},
		{Name: "disk.Rebuild", New: func() verb.Step { return new(rebuild) }},
		{Name: "disk.Settle", New: func() verb.Step { return new(settle) }, Waits: true},
	}
}

type burst struct {
	Of     string        `arg:"of,required" of:"workload"`
	Length time.Duration `arg:"length" unit:"s"`
}

func (b *burst) spec() verb.LoadSpec {
	return verb.LoadSpec{Workload: b.Of, Runtime: b.Length, Async: true}
}

func (b *burst) Effect(*verb.View) verb.Effect {
	spec := b.spec()
	return verb.Effect{Subject: b.Of, Load: &spec}
}

func (b *burst) Run(ctx context.Context, env *verb.Env) error { return env.Loads.Start(ctx, b.spec()) }

type burstEnd struct {
	Of string `arg:"of,required" of:"workload"`
}

func (b *burstEnd) Effect(*verb.View) verb.Effect { return verb.Effect{Subject: b.Of, Stops: b.Of} }

func (b *burstEnd) Run(ctx context.Context, env *verb.Env) error { return env.Loads.Stop(ctx, b.Of) }

type rebuild struct{}

func (*rebuild) Run(ctx context.Context, env *verb.Env) error { return pass(ctx, 30*time.Second) }

type settle struct {
	For time.Duration `arg:"for,required" unit:"s" scale:"wait"`
}

func (s *settle) Estimate(*verb.View) time.Duration { return s.For }

func (s *settle) Run(ctx context.Context, _ *verb.Env) error { return pass(ctx, s.For) }

func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const newcomersHead = `name: example
display_name: Example
summary: Unknown steps
description: Wait for 5 minutes.
estimated_runtime: ESTIMATE
vms:
  - Workers: {template: ubuntu1604, data_disks: {count: 1, size: 1}, count_per_node: 1}
workloads:
  - Load: {vm_group: Workers, config_file: load.fio}
results:
  - Load IOPS: {workload_name: Load, result_type: iops}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: Workers, power_on: True}
  - workload.PrefillRun: {workload_name: Load}
run:
  - burst.Begin: {of: Load, length: 3600}
  - disk.Settle: {for: 300}
  - disk.Rebuild: {}
  - disk.Settle: {for: 60}
`

// TestNewStepIsOneFile: properties of a step come from its registration, so that a new one is checked, planned, run and
// drawn like the others.
func TestNewStepIsOneFile(t *testing.T) {
	text := func(estimate int, more string) string {
		return strings.Replace(newcomersHead, "ESTIMATE", fmt.Sprint(estimate), 1) + more
	}
	const end, teardown = "  - burst.End: {of: Load}\n", "teardown:\n  - cluster.CleanUp: {}\n"
	catalog := verb.Catalog{Steps: append(step.All(), newcomers()...), Generators: load.Kinds{{Name: "native", Generator: plannertest.Plain{}, JobFiles: true}}}
	for _, c := range []struct {
		text string
		want []string
	}{
		{text(600, end+teardown), nil},
		{text(600, teardown), []string{"async-cut-off"}},
		{text(300, end+teardown), []string{"estimated-runtime"}},
		{text(600, end+end+teardown), nil},
		{strings.Replace(text(600, end+teardown), "burst.Begin: {of: Load, length: 3600}", "disk.Rebuild: {}", 1),
			[]string{"result-idle", "wait-without-start"}},
		{strings.Replace(text(600, end+teardown), "for: 300", "for: 200", 1), []string{"description-disagrees"}},
	} {
		var codes []string
		for _, f := range lint.Check(parse(t, c.text), catalog) {
			codes = append(codes, f.Code)
		}
		if slices.Sort(codes); !slices.Equal(codes, c.want) {
			t.Errorf("lint finds %q, want %q in\n%s", codes, c.want, c.text)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.Catalog.Steps = append(l.Catalog.Steps, newcomers()...)
		if outcome := l.run(parse(t, text(600, end+teardown)), planner.Options{}, nil); outcome.Ended != executor.Completed {
			t.Fatalf("the run ended with %+v", outcome)
		}
		var windows, marks []string
		for _, w := range analysis.NewTimeline(l.Events, 0).Windows() {
			windows = append(windows, w.Name)
		}
		if want := []string{"between Load and disk.Rebuild", "during disk.Rebuild", "between disk.Rebuild and burst.End Load"}; !slices.Equal(windows, want) {
			t.Errorf("windows %q, want %q", windows, want)
		}
		for _, m := range document.Build(&document.Run{Events: l.Events}).Marks {
			marks = append(marks, m.Label)
		}
		if want := []string{"burst.Begin Load", "disk.Rebuild", "burst.End Load"}; !slices.Equal(marks, want) {
			t.Errorf("marks %q, want %q", marks, want)
		}
		if starts := analysis.NewTimeline(l.Events, 0).StartsOf("Load"); len(starts) != 1 || !starts[0].Stopped {
			t.Errorf("starts of the load: %+v", starts)
		}
	})
}
