package executor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
)

// patientRunner prepares slowly and records when it received each start time. Each VM takes longer than the previous one.
type patientRunner struct {
	mu        sync.Mutex
	zero      time.Time
	prepared  []time.Time
	reported  []time.Time // when each VM received its start
	started   []time.Time // and when that was
	discarded int
	fail      string                          // VM that cannot be prepared
	late      func(ordinal int) time.Duration // how late a VM starts
}

type patientVM struct {
	*patientRunner
	vm target.VM
}

type patientHeld struct {
	patientVM
	w    load.Workload
	sink load.Sink
}

func (v patientVM) Run(context.Context, load.Workload, load.Sink) error {
	return errors.New("it was not prepared first")
}

func (v patientVM) Prepare(ctx context.Context, w load.Workload, sink load.Sink) (load.Held, error) {
	if v.vm.Name == v.fail {
		return nil, errors.New("no disk")
	}
	select {
	case <-time.After(time.Duration(1+v.vm.Ordinal) * 10 * time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.prepared = append(v.prepared, time.Now())
	return patientHeld{v, w, sink}, nil
}

func (h patientHeld) Timing() load.Timing {
	return load.Timing{Trip: time.Duration(1+h.vm.Ordinal) * 100 * time.Millisecond, ClockError: time.Millisecond}
}

func (h patientHeld) Discard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.discarded++
}

func (h patientHeld) Run(ctx context.Context, at time.Time) error {
	h.mu.Lock()
	h.reported = append(h.reported, time.Now())
	h.started = append(h.started, at)
	late := time.Duration(0)
	if h.late != nil {
		late = h.late(h.vm.Ordinal)
	}
	zero := h.zero
	h.mu.Unlock()
	iv := interval.Interval{Workload: h.w.Name, Group: h.w.Group, VM: h.vm.Name, Instance: h.w.Instance, LengthNanos: 1e9,
		StartNanos: int64(at.Add(late).Sub(zero)), Final: true}
	select {
	case <-time.After(time.Until(at) + late + h.w.Runtime):
	case <-ctx.Done():
	}
	h.sink.Interval(iv)
	return nil
}

func (p *patientRunner) in(cfg *executor.Config) {
	p.zero = cfg.Zero
	cfg.Runner = func(_ context.Context, vm target.VM) (load.Runner, error) { return patientVM{p, vm}, nil }
}

const startOnce = `run:
  - workload.Start: {workload_name: Load, runtime_secs: 20}
`

// TestLoadStartsTogether: the slowest VM determines the common start time and how far ahead it is announced.
func TestLoadStartsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newLab(t, 4), &patientRunner{late: func(ordinal int) time.Duration { return time.Duration(ordinal) * 5 * time.Millisecond }}
		if outcome := l.run(plannertest.Head+plannertest.Deployed+startOnce, p.in); outcome.Ended != executor.Completed {
			t.Fatal(outcome)
		}
		if len(p.started) != 4 {
			t.Fatalf("%d VMs started", len(p.started))
		}
		lastPrepared := slices.MaxFunc(p.prepared, time.Time.Compare)
		for i, at := range p.started {
			if !at.Equal(p.started[0]) {
				t.Errorf("one VM starts %v behind another", at.Sub(p.started[0]))
			}
			// The slowest trip is 400 ms.
			if ahead := at.Sub(p.reported[i]); ahead < 800*time.Millisecond || ahead > 3*time.Second {
				t.Errorf("a VM was notified %v ahead", ahead)
			}
			if p.reported[i].Before(lastPrepared) {
				t.Error("a VM was notified before all were prepared")
			}
		}
		reported := l.Messages(interval.EventStarts)
		if len(reported) != 1 || !strings.Contains(reported[0], "start skew 15.00 ms (4 VMs; last: Workers-0004, +15.00 ms); clock error ±1.00 ms") {
			t.Errorf("reported %q", reported)
		}
		for _, e := range l.Events {
			if e.Kind == interval.EventWorkloadStart && !l.zeroAt(e, p.zero).Equal(p.started[0]) {
				t.Errorf("the start is noted %v behind it", l.zeroAt(e, p.zero).Sub(p.started[0]))
			}
		}
	})
}

func (l *lab) zeroAt(e interval.Event, zero time.Time) time.Time {
	return zero.Add(time.Duration(e.AtNanos))
}

// TestVMThatCannotPrepare: the others start without it, at their start time, and the load has failed.
func TestVMThatCannotPrepare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newLab(t, 3), &patientRunner{fail: "Workers-0002"}
		outcome := l.run(plannertest.Head+plannertest.Deployed+startOnce, p.in)
		if outcome.Ended != executor.Failed || len(p.started) != 2 || !p.started[0].Equal(p.started[1]) {
			t.Errorf("%+v, %d VMs started", outcome, len(p.started))
		}
		if reported := l.Messages(interval.EventDisturbance); len(reported) != 1 || !strings.Contains(reported[0], "Workers-0002") {
			t.Errorf("reported %q", reported)
		}
	})
}

// TestStopBeforeTheStart: VMs that wait for their start are released, and so are VMs that are still preparing.
func TestStopBeforeTheStart(t *testing.T) {
	for name, tt := range map[string]struct {
		stagger   string
		after     time.Duration
		discarded int
		started   int
	}{
		"while it is prepared":       {"0", 15 * time.Second, 1, 0},
		"while some wait their turn": {"100", 45 * time.Second, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, p := newLab(t, 4), &patientRunner{}
				if tt.started == 0 {
					l = newLab(t, 2)
				}
				e := l.engine(plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Load, runtime_secs: 500, stagger_secs: `+tt.stagger+`}
`, p.in)
				go func() {
					time.Sleep(tt.after)
					if tt.started > 0 {
						time.Sleep(40 * time.Second)
					}
					e.Stop(executor.StopAndUndo)
				}()
				outcome, err := e.Run(t.Context())
				if err != nil || outcome.Ended != executor.Interrupted {
					t.Fatal(outcome, err)
				}
				if p.discarded != tt.discarded || len(p.started) != tt.started {
					t.Errorf("%d were discarded and %d started, want %d and %d", p.discarded, len(p.started), tt.discarded, tt.started)
				}
			})
		})
	}
}

// TestWhoeverIsSwitchedOffIsTold: Gone is called for each VM that the run powers off, so that no goroutine waits for its
// agent.
func TestWhoeverIsSwitchedOffIsTold(t *testing.T) {
	for name, tt := range map[string]struct {
		cut  string
		want []string
	}{
		"group":    {"vm_group.PowerOff: {vm_group_name: Workers}", []string{"Workers-0001", "Workers-0002"}},
		"node":     {"nodes.PowerOff: {nodes: 1}", []string{"Workers-0002"}},
		"shutdown": {"nodes.Shutdown: {nodes: 1}", []string{"Workers-0002"}},
		"removal":  {"cluster.CleanUp: {}", []string{"Workers-0001", "Workers-0002"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 2)
				var mu sync.Mutex
				var gone []string
				l.run(plannertest.Head+plannertest.Deployed+"run:\n  - "+tt.cut+"\n  - test.Wait: {duration_secs: 1}\n", func(cfg *executor.Config) {
					cfg.Gone = func(vm target.VM) {
						mu.Lock()
						defer mu.Unlock()
						gone = append(gone, vm.Name)
					}
				})
				for _, vm := range tt.want {
					if !slices.Contains(gone, vm) {
						t.Errorf("reported of %q, want %q", gone, tt.want)
					}
				}
			})
		})
	}
}

// TestStaggerAsXRay: fewer than two VMs start at once, gaps are whole seconds, and the step ends when the last VM has
// started, or one gap later if that is still within the span. Plan and run agree.
func TestStaggerAsXRay(t *testing.T) {
	for _, c := range []struct {
		vms     int
		stagger string
		gap     time.Duration
		held    time.Duration
	}{
		{1, "900", 0, 0},
		{2, "900", 900 * time.Second, 900 * time.Second},
		{4, "900", 300 * time.Second, 900 * time.Second},
		{4, "10", 3 * time.Second, 9 * time.Second},
		{4, "2", 0, 0},
		{7, "11", time.Second, 7 * time.Second}, // the seventh starts after 6 s, and one more gap fits
	} {
		synctest.Test(t, func(t *testing.T) {
			l, p := newLab(t, c.vms), &patientRunner{}
			var after time.Duration
			plan := l.Plan(plannertest.Load(t, plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Load, runtime_secs: 2000, stagger_secs: `+c.stagger+`, async: true}
  - test.Wait: {duration_secs: 1}
  - workload.Wait: {workload_name: Load}
`), planner.Options{Seed: 7})
			if outcome, err := l.Engine(plan, p.in).Run(t.Context()); err != nil || outcome.Ended != executor.Completed {
				t.Fatal(outcome, err)
			}
			slices.SortFunc(p.started, time.Time.Compare)
			for i, at := range p.started {
				if off := at.Sub(p.started[0]); off != c.gap*time.Duration(i) {
					t.Errorf("%d VMs over %s s: VM %d started after %v", c.vms, c.stagger, i+1, off)
				}
			}
			for _, e := range l.Events {
				if e.Kind == interval.EventStepEnded && e.Step == "workload.Start" {
					after = l.zeroAt(e, p.zero).Sub(p.started[0])
				}
			}
			if after != c.held {
				t.Errorf("%d VMs over %s s: the step ended %v after the first start, want %v", c.vms, c.stagger, after, c.held)
			}
			start, wait := plan.Steps[2], plan.Steps[4]
			left := 2000*time.Second + c.gap*time.Duration(c.vms-1) - c.held - time.Second
			if start.Duration != c.held || wait.Duration != left {
				t.Errorf("%d VMs over %s s: planned %v and a wait of %v, want %v and %v", c.vms, c.stagger, start.Duration,
					wait.Duration, c.held, left)
			}
		})
	}
}

// TestStaggerOfRehearsal: gaps shrink with all other times and are not rounded; those that X-Ray would not make are not made.
func TestStaggerOfRehearsal(t *testing.T) {
	for stagger, want := range map[string]time.Duration{"900": 9 * time.Second, "2": 0} {
		l := newLab(t, 4)
		plan := l.Plan(plannertest.Load(t, plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Load, runtime_secs: 3000, stagger_secs: `+stagger+`, async: true}
  - test.Wait: {duration_secs: 10000}
`), planner.Options{Rehearse: 100*time.Second + want})
		if got := plan.Steps[2].Duration; (got - want).Abs() > 300*time.Millisecond {
			t.Errorf("a stagger of %s s holds the step for %v, want about %v", stagger, got, want)
		}
	}
}

// splitting is a patient runner whose loads note when their intervals were to be split. Those of one VM do not answer.
type splitting struct {
	*patientRunner
	mu     sync.Mutex
	splits map[string][]time.Time // by VM
	mute   string
}

type splittingVM struct {
	patientVM
	of *splitting
}

type splittingHeld struct {
	load.Held
	of *splitting
	vm string
}

func (v splittingVM) Prepare(ctx context.Context, w load.Workload, sink load.Sink) (load.Held, error) {
	held, err := v.patientVM.Prepare(ctx, w, sink)
	return splittingHeld{held, v.of, v.vm.Name}, err
}

func (h splittingHeld) Split(ctx context.Context, at time.Time) error {
	if h.vm == h.of.mute {
		<-ctx.Done()
		return ctx.Err()
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if !time.Now().Before(at) {
		return errors.New("too late")
	}
	h.of.splits[h.vm] = append(h.of.splits[h.vm], at)
	return nil
}

// TestStepsSplitIntervals: a step that divides the run begins and ends when the intervals of all loads do, also if an agent does
// not answer. Other steps wait for nothing.
func TestStepsSplitIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		s := &splitting{patientRunner: &patientRunner{}, splits: map[string][]time.Time{}, mute: "Workers-0003"}
		outcome := l.run(plannertest.Head+plannertest.Deployed+`run:
  - workload.Start: {workload_name: Load, runtime_secs: 60, async: True}
  - test.Wait: {duration_secs: 5}
  - vm_group.MigrateGroup: {vm_group_name: Workers, from_node: 0, to_node: 1}
  - test.Wait: {duration_secs: 5}
`, func(cfg *executor.Config) {
			s.in(cfg)
			cfg.Runner = func(_ context.Context, vm target.VM) (load.Runner, error) {
				return splittingVM{patientVM{s.patientRunner, vm}, s}, nil
			}
		})
		if outcome.Ended != executor.Completed {
			t.Fatal(outcome)
		}
		var borders []time.Time
		for _, e := range l.Events {
			if e.Label != "" && (e.Kind == interval.EventStepEnded || e.Step != "workload.Start") {
				borders = append(borders, l.zeroAt(e, s.zero))
			}
		}
		if len(borders) != 3 { // the end of the start, and both of the migration
			t.Fatalf("%d begins and ends of steps with a load", len(borders))
		}
		for _, vm := range []string{"Workers-0001", "Workers-0002"} {
			if !slices.EqualFunc(s.splits[vm], borders, time.Time.Equal) {
				t.Errorf("%s was split at %v, steps begin and end at %v", vm, s.splits[vm], borders)
			}
		}
	})
}
