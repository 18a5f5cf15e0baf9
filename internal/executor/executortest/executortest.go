// Package executortest runs plans on the fake target, with agents whose loads only take their time, for tests of the executor and
// of steps.
//
//	scenario ──Plan──▶ plan ──Engine──▶ executor on a fake target ──▶ events and loads, as the Lab recorded them
package executortest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
	"github.com/braggdev/bragg/internal/verb"
)

// Lab is a fake target and a place for runs. The mutex guards what a run records.
type Lab struct {
	T       *testing.T
	Fake    *fake.Target
	Runs    string // the runs directory
	Catalog verb.Catalog

	sync.Mutex
	Events []interval.Event
	Loads  []load.Workload // as they began
	Began  []time.Time
	active int
	Peak   int // loads at a time

	LoadErr  func(w load.Workload) error // result of a load at its end
	Hang     bool                        // loads do not observe their context
	Stubborn time.Duration               // how long a load takes to stop
}

// New opens a fake target until the test ends.
func New(t *testing.T, nodes int) *Lab {
	t.Helper()
	l := &Lab{T: t, Runs: t.TempDir(), Catalog: plannertest.Catalog()}
	serve := func(ctx context.Context, _ net.Conn, _ target.VM) error { <-ctx.Done(); return nil }
	var err error
	l.Fake, err = fake.Open(t.Context(), target.Config{Provider: "fake", Name: "lab", NodeCount: nodes,
		Allow: target.Allow{NodePower: true, Maintenance: true}}, target.OpenOptions{ServeAgent: serve})
	l.must(err)
	t.Cleanup(func() { _ = l.Fake.Close() })
	return l
}

func (l *Lab) must(err error) {
	l.T.Helper()
	if err != nil {
		l.T.Fatal(err)
	}
}

// Compile plans a scenario. change may alter the inventory.
func (l *Lab) Compile(sc *scenario.Scenario, options planner.Options, change func(*target.Inventory)) (*planner.Plan, error) {
	l.T.Helper()
	inventory, err := l.Fake.Inventory(l.T.Context())
	l.must(err)
	if change != nil {
		change(&inventory)
	}
	return planner.Compile(sc, inventory, target.Capabilities(l.Fake), l.Catalog, options)
}

// Plan plans a scenario that has no errors.
func (l *Lab) Plan(sc *scenario.Scenario, options planner.Options) *planner.Plan {
	l.T.Helper()
	plan, err := l.Compile(sc, options, nil)
	l.must(err)
	return plan
}

// Journal begins the journal of run "r1".
func (l *Lab) Journal(files control.Files, failpoint func(string) error) (*control.Journal, error) {
	tag, err := control.NewTag(l.Runs, "r1", nil)
	l.must(err)
	return control.CreateJournal(l.Runs, control.Header{Run: "r1", Tag: tag, Scenario: "lab"}, files, failpoint)
}

// Config is that of a run without a journal.
func (l *Lab) Config() executor.Config {
	return executor.Config{Target: l.Fake, Runner: l.Runner, Zero: time.Now(), Events: l.Event,
		Intervals: load.SinkFunc(func(interval.Interval) {}), Dir: l.T.TempDir()}
}

// Engine prepares a run of a plan.
func (l *Lab) Engine(plan *planner.Plan, change func(*executor.Config)) *executor.Engine {
	l.T.Helper()
	cfg := l.Config()
	var err error
	cfg.Journal, err = l.Journal(nil, nil)
	l.must(err)
	l.T.Cleanup(func() { _ = cfg.Journal.Close() })
	if change != nil {
		change(&cfg)
	}
	engine, err := executor.New(plan, cfg)
	l.must(err)
	return engine
}

// Run executes a plan to its end.
func (l *Lab) Run(plan *planner.Plan, change func(*executor.Config)) executor.Outcome {
	l.T.Helper()
	outcome, err := l.Engine(plan, change).Run(l.T.Context())
	l.must(err)
	return outcome
}

// Event records an event.
func (l *Lab) Event(e interval.Event) {
	l.Lock()
	defer l.Unlock()
	l.Events = append(l.Events, e)
}

// Messages returns the messages of all events of a kind.
func (l *Lab) Messages(kind interval.EventKind) []string {
	l.Lock()
	defer l.Unlock()
	var out []string
	for _, e := range l.Events {
		if e.Kind == kind {
			out = append(out, e.Message)
		}
	}
	return out
}

// Operations returns the operations of the given names on the target, as "Name subject detail", without the calls that only
// concern single VMs.
func (l *Lab) Operations(names ...string) []string {
	var out []string
	for _, op := range l.Fake.Operations() {
		if slices.Contains(names, op.Name) {
			out = append(out, strings.TrimSpace(op.Name+" "+op.Subject+" "+op.Detail))
		}
	}
	return out
}

// MustBeClean fails unless nothing of the run is left on the target.
func (l *Lab) MustBeClean() {
	l.T.Helper()
	left, err := control.RecoverRun(l.Runs, "r1")
	l.must(err)
	vms, err := l.Fake.Owned(context.Background(), left.Header.Tag)
	if err != nil || len(vms) > 0 {
		l.T.Errorf("%d VMs are left (%v)", len(vms), err)
	}
	if err := l.Fake.Ready(context.Background()); err != nil {
		l.T.Errorf("left behind: %v", err)
	}
}

// Runner reaches the agent in a VM.
func (l *Lab) Runner(ctx context.Context, vm target.VM) (load.Runner, error) {
	conn, err := l.Fake.DialAgent(ctx, vm)
	if err != nil {
		return nil, err
	}
	return &idle{lab: l, conn: conn}, nil
}

// idle runs a workload that only takes its time. It notices when its VM loses power, because the pipe closes.
type idle struct {
	lab  *Lab
	conn net.Conn
}

const prefillTakes = 2 * time.Second

func (r *idle) Run(ctx context.Context, w load.Workload, sink load.Sink) error {
	l := r.lab
	l.Lock()
	l.Loads, l.Began = append(l.Loads, w), append(l.Began, time.Now())
	l.active++
	l.Peak = max(l.Peak, l.active)
	hang, stubborn, fail := l.Hang, l.Stubborn, l.LoadErr
	l.Unlock()
	defer func() {
		l.Lock()
		l.active--
		l.Unlock()
	}()
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		_, _ = r.conn.Read(make([]byte, 1))
	}()
	defer func() { _ = r.conn.Close(); <-lost }()
	length := w.Runtime
	if length == 0 {
		length = prefillTakes
	}
	done := ctx.Done()
	if hang {
		done = nil
	}
	end := time.NewTimer(length)
	defer end.Stop()
	select {
	case <-end.C:
		sink.Interval(interval.Interval{Workload: w.Name, VM: w.VM, Instance: w.Instance, Final: true})
		if fail != nil {
			return fail(w)
		}
		return nil
	case <-done:
		time.Sleep(stubborn)
		return nil
	case <-lost:
		return fmt.Errorf("run %s: %w", w.Name, load.ErrLost)
	}
}
