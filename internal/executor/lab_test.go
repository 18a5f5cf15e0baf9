package executor_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a fake target with agents that pass the time, and a place for runs. Its fields are guarded by mu.
type lab struct {
	t    *testing.T
	fake *fake.Target
	runs string

	mu       sync.Mutex
	events   []interval.Event
	loads    []load.Workload // as they began
	began    []time.Time
	active   int
	peak     int
	loadErr  func(w load.Workload) error // result of a load at its end
	hang     bool                        // loads do not observe their context
	stubborn time.Duration               // how long a load takes to stop
}

func newLab(t *testing.T, nodes int) *lab {
	t.Helper()
	l := &lab{t: t, runs: t.TempDir()}
	serve := func(ctx context.Context, _ net.Conn, _ target.VM) error { <-ctx.Done(); return nil }
	var err error
	l.fake, err = fake.Open(t.Context(), target.Config{Provider: "fake", Name: "lab", NodeCount: nodes,
		Allow: target.Allow{NodePower: true}}, target.OpenOptions{ServeAgent: serve})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.fake.Close() })
	return l
}

func (l *lab) plan(sc *scenario.Scenario, options planner.Options) *planner.Plan {
	l.t.Helper()
	inventory, err := l.fake.Inventory(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	plan, err := planner.Compile(sc, inventory, target.Capabilities(l.fake), plannertest.Catalog(), options)
	if err != nil {
		l.t.Fatal(err)
	}
	return plan
}

// journal begins the journal of run "r1".
func (l *lab) journal(files control.Files, failpoint func(string) error) (*control.Journal, error) {
	tag, err := control.NewTag(l.runs, "r1", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return control.CreateJournal(l.runs, control.Header{Run: "r1", Tag: tag, Scenario: "lab"}, files, failpoint)
}

// engine prepares a run of the scenario in text.
func (l *lab) engine(text string, change func(*executor.Config)) *executor.Engine {
	l.t.Helper()
	return l.engineOf(l.plan(plannertest.Load(l.t, text), planner.Options{Seed: 7}), change)
}

func (l *lab) engineOf(plan *planner.Plan, change func(*executor.Config)) *executor.Engine {
	l.t.Helper()
	journal, err := l.journal(nil, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = journal.Close() })
	cfg := executor.Config{Target: l.fake, Journal: journal, Runner: l.runner, Zero: time.Now(), Events: l.event,
		Intervals: load.SinkFunc(func(interval.Interval) {}), Dir: l.runs}
	if change != nil {
		change(&cfg)
	}
	engine, err := executor.New(plan, cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	return engine
}

// run executes the scenario in text to its end.
func (l *lab) run(text string, change func(*executor.Config)) executor.Outcome {
	l.t.Helper()
	outcome, err := l.engine(text, change).Run(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return outcome
}

func (l *lab) event(e interval.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// messages returns the messages of all events of a kind.
func (l *lab) messages(kind interval.EventKind) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, e := range l.events {
		if e.Kind == kind {
			out = append(out, e.Message)
		}
	}
	return out
}

// stepErrors returns how steps of a name ended.
func (l *lab) stepErrors(step string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, e := range l.events {
		if e.Kind == interval.EventStepEnded && e.Step == step {
			out = append(out, e.Error)
		}
	}
	return out
}

// mustBeClean fails unless nothing of the run is left on the target.
func (l *lab) mustBeClean() {
	l.t.Helper()
	header, err := control.RecoverRun(l.runs, "r1")
	if err != nil {
		l.t.Fatal(err)
	}
	vms, err := l.fake.Owned(context.Background(), header.Header.Tag)
	if err != nil || len(vms) > 0 {
		l.t.Errorf("%d VMs are left (%v)", len(vms), err)
	}
	if err := l.fake.Ready(context.Background()); err != nil {
		l.t.Errorf("left behind: %v", err)
	}
}

func (l *lab) runner(ctx context.Context, vm target.VM) (load.Runner, error) {
	conn, err := l.fake.DialAgent(ctx, vm)
	if err != nil {
		return nil, err
	}
	return &idle{lab: l, conn: conn}, nil
}

// idle runs a workload that only takes its time. It notices when its VM loses power, because the pipe closes.
type idle struct {
	lab  *lab
	conn net.Conn
}

const prefillTakes = 2 * time.Second

func (r *idle) Run(ctx context.Context, w load.Workload, sink load.Sink) error {
	l := r.lab
	l.mu.Lock()
	l.loads, l.began = append(l.loads, w), append(l.began, time.Now())
	l.active++
	l.peak = max(l.peak, l.active)
	hang, stubborn, fail := l.hang, l.stubborn, l.loadErr
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.active--
		l.mu.Unlock()
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

// operations returns the operations on the target, without the calls that only concern single VMs.
func (l *lab) operations(names ...string) []string {
	var out []string
	for _, op := range l.fake.Operations() {
		if slices.Contains(names, op.Name) {
			out = append(out, strings.TrimSpace(op.Name+" "+op.Subject+" "+op.Detail))
		}
	}
	return out
}
