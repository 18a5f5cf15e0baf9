package planner_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
)

// paced plans like Plain, with a length that its configuration says.
type paced struct {
	plannertest.Plain
	least, most time.Duration
}

func (p paced) Plan(w load.Workload) (load.Plan, error) {
	plan, err := p.Plain.Plan(w)
	plan.TakesLeast, plan.TakesMost = p.least, p.most
	return plan, err
}

// TestEstimateCountsRatesAndRuntimes: a slow rate or a runtime in the job file makes the length of a load that no step
// bounds, and a rehearsal shrinks the rest only.
func TestEstimateCountsRatesAndRuntimes(t *testing.T) {
	l := newLab(t, 4)
	inventory, err := l.fake.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		least, most time.Duration
		steps       string
		want        time.Duration
		rough       bool
	}{
		{0, 0, "  - workload.Start: {workload_name: Load}\n", 2684354560, true}, // 4 VMs with 128 MiB at 200 MB/s
		{164 * time.Second, 0, "  - workload.Start: {workload_name: Load}\n", 164 * time.Second, true},
		{4 * time.Second, 4 * time.Second, "  - workload.Start: {workload_name: Load}\n", 4 * time.Second, false},
		{0, time.Second, "  - workload.Start: {workload_name: Load}\n", time.Second, true},
		{0, 4 * time.Second, "  - workload.Start: {workload_name: Load, runtime_secs: 60}\n", 4 * time.Second, false},
		{9 * time.Second, 0, "  - workload.Start: {workload_name: Load, async: true}\n  - workload.Wait: {workload_name: Load}\n", 9 * time.Second, false},
	} {
		catalog := plannertest.Catalog()
		catalog.Generators = load.Kinds{{Name: "native", Generator: paced{least: c.least, most: c.most}, JobFiles: true}}
		compile := func(options planner.Options, more string) *planner.Plan {
			plan, err := planner.Compile(plannertest.Load(t, plannertest.Head+plannertest.Deployed+"run:\n"+c.steps+more), inventory, target.Capabilities(l.fake), catalog, options)
			if err != nil {
				t.Fatal(err)
			}
			return plan
		}
		if e := compile(planner.Options{}, "").Estimate; e.Run != c.want || e.Rough != c.rough {
			t.Errorf("%v to %v: the run takes %v (rough: %t), want %v", c.least, c.most, e.Run, e.Rough, c.want)
		}
		// In a rehearsal the wait after the load gets the remaining time.
		asked := c.want + 10*time.Second
		rehearsal := compile(planner.Options{Rehearse: asked}, "  - test.Wait: {duration_secs: 1000}\n")
		if off := rehearsal.Estimate.Run - asked; off.Abs() > time.Second && c.steps[len(c.steps)-4:] != "60}\n" {
			t.Errorf("%v to %v: the rehearsal takes %v, asked for %v", c.least, c.most, rehearsal.Estimate.Run, asked)
		}
	}
}

// timed has times of its own in its configuration, which rehearsals shorten.
type timed struct{ plannertest.Plain }

const (
	timedTakes    = 10 * time.Minute
	timedShortest = 6 * time.Second
)

func (timed) Plan(w load.Workload) (load.Plan, error) {
	p, err := plannertest.Plain{}.Plan(w)
	p.Timed, p.TakesShortest, p.TakesMost = true, timedShortest, timedTakes
	if f := w.Scale.Times; f > 0 && f < 1 {
		p.TakesMost = max(timedShortest, time.Duration(float64(timedTakes)*f))
	}
	p.TakesLeast = p.TakesMost
	return p, err
}

// TestRehearsalScalesTimesOfConfigurations: a load without a runtime is shortened by its generator, with the factor that the plan states.
func TestRehearsalScalesTimesOfConfigurations(t *testing.T) {
	l := newLab(t, 4)
	inventory, err := l.fake.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	catalog := plannertest.Catalog()
	catalog.Generators = load.Kinds{{Name: "native", Generator: timed{}, JobFiles: true}}
	text := plannertest.Head + plannertest.Deployed + "run:\n  - workload.Start: {workload_name: Load}\n"
	for asked, want := range map[time.Duration]struct {
		takes  time.Duration
		factor float64
	}{time.Minute: {time.Minute, 0.1}, time.Second: {timedShortest, 1.0 / 600}, time.Hour: {timedTakes, 1}} {
		plan, err := planner.Compile(plannertest.Load(t, text), inventory, target.Capabilities(l.fake), catalog, planner.Options{Rehearse: asked})
		if err != nil {
			t.Fatal(err)
		}
		factor, scale := plan.Rehearsal.TimeFactor, plan.Workloads[0].Scale.Times
		if (plan.Estimate.Run-want.takes).Abs() > 10*time.Millisecond || plan.Estimate.Rough || math.Abs(factor/want.factor-1) > 1e-3 || scale != factor && want.factor < 1 {
			t.Errorf("%s: the run takes %s, times × %g, and the load is planned with %g", asked, plan.Estimate.Run, factor, scale)
		}
		if noted := strings.Contains(planText(t, plan), "lengthen the run phase to about 6 s"); noted != (asked == time.Second) {
			t.Errorf("%s: the plan has a note about floors: %t", asked, noted)
		}
	}
}

// TestEstimateCountsVMsOfTheMoment: a group that grows later is prefilled with the VMs that it has before.
func TestEstimateCountsVMsOfTheMoment(t *testing.T) {
	const grows = `setup:
  - vm_group.CloneFromTemplate: {vm_group_name: Workers}
  - vm_group.PowerOn: {vm_group_name: Workers}
  - workload.PrefillRun: {workload_name: Load, max_concurrent: 4}
run:
  - vm_group.Grow: {vm_group_name: Workers, count_per_node: 25}
  - workload.Start: {workload_name: Load}
`
	l := newLab(t, 2)
	plan := l.plan(plannertest.Load(t, plannertest.Head+grows), planner.Options{})
	one := 671088640 * time.Nanosecond // 128 MiB at 200 MB/s
	if got := plan.Steps[2].Duration; got != 2*one {
		t.Errorf("the prefill of two VMs takes %v, want %v", got, 2*one)
	}
	if got := plan.Steps[4].Duration; got != 50*one {
		t.Errorf("the load on fifty VMs takes %v, want %v", got, 50*one)
	}
	if got := plan.Footprint.WrittenKnownBytes; got != 2*128<<20 {
		t.Errorf("the prefill writes %d bytes", got)
	}
}

// TestPlanShowsTheDepthOfThePrefill: the VMs that write at the same time share four writes per node, in the plan as in the run.
// TestEstimateCountsBoots: VMs that boot share the processors of their node. The time counts in the timeline; a rehearsal, which
// cannot shrink it, shrinks the rest as if VMs answered at once.
func TestEstimateCountsBoots(t *testing.T) {
	l := newLab(t, 2)
	inventory, err := l.fake.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range inventory.Nodes {
		inventory.Nodes[i].CPUs = 2
	}
	inventory.Boots = map[string]target.Boot{"ubuntu1604": {Alone: 90 * time.Second, CPU: 2 * time.Minute, Basis: "emulated"}}
	const steps = `setup:
  - vm_group.CloneFromTemplate: {vm_group_name: Workers, power_on: True}
  - vm_group.PowerOn: {vm_group_name: Workers}
run:
  - test.Wait: {duration_secs: 600}
  - vm_group.Grow: {vm_group_name: Workers, count_per_node: 5}
  - nodes.PowerOff: {nodes: 0}
  - nodes.PowerOn: {nodes: 0}
  - vm_group.PowerOn: {vm_group_name: Workers}
  - vm_group.PowerOff: {vm_group_name: Workers}
  - vm_group.PowerOn: {vm_group_name: Workers}
`
	compile := func(options planner.Options) *planner.Plan {
		plan, err := planner.Compile(plannertest.Load(t, plannertest.Head+steps), inventory, target.Capabilities(l.fake), plannertest.Catalog(), options)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	plan := compile(planner.Options{})
	// One VM per node takes 90 s; four more on each have four minutes of two processors, and five have five.
	for i, want := range []time.Duration{90e9, 0, 600e9, 240e9, 0, 0, 300e9, 0, 300e9} {
		if s := plan.Steps[i]; s.Duration != want || s.Rough != (want > 0 && s.Name != "test.Wait") {
			t.Errorf("step %d (%s) takes %v (rough: %t), want %v", s.ID, s.Name, s.Duration, s.Rough, want)
		}
	}
	if text := planText(t, plan); !strings.Contains(text, "; a VM boots in 1 m 30 s and 2 m of a processor (emulated))") {
		t.Errorf("plan without what boots take:\n%s", text)
	}
	rehearsal := compile(planner.Options{Rehearse: time.Minute})
	if wait := rehearsal.Steps[2].Duration; (wait-time.Minute).Abs() > time.Second || rehearsal.Steps[0].Duration != 90*time.Second {
		t.Errorf("a rehearsal waits %v and boots in %v", wait, rehearsal.Steps[0].Duration)
	}
}
