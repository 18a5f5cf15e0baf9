package step_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/step"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
	"github.com/braggdev/bragg/internal/verb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	files := fstest.MapFS{"test.yml": {Data: []byte(text)}, "load.fio": {Data: []byte(step.ExampleJob)}}
	sc, err := scenario.Load(t.Context(), scenario.Source{FS: files, Name: "example", Trusted: true}, scenario.Options{})
	if err != nil {
		t.Fatalf("%s\n%s", describe(t, err), text)
	}
	return sc
}

// lab runs scenarios on a fake target with agents that only take their time.
type lab struct {
	t    *testing.T
	fake *fake.Target

	mu     sync.Mutex
	events []interval.Event
	loads  int
	steps  []verb.Kind                   // besides those of the list
	runs   string                        // the runs directory of the last run
	ready  func(engine *executor.Engine) // called beside the run when it begins
}

func newLab(t *testing.T, nodes int) *lab {
	t.Helper()
	l := &lab{t: t}
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

// run compiles and executes a scenario. change may replace the target, so that one lacks what the fake has.
func (l *lab) run(sc *scenario.Scenario, options planner.Options, change func(*executor.Config, *target.Inventory)) executor.Outcome {
	l.t.Helper()
	inventory, err := l.fake.Inventory(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	cfg := executor.Config{Target: l.fake, Runner: l.runner, Zero: time.Now(), Events: l.event,
		Intervals: load.SinkFunc(func(interval.Interval) {}), Dir: l.t.TempDir()}
	if change != nil {
		change(&cfg, &inventory)
	}
	catalog := verb.Catalog{Steps: append(step.All(), l.steps...), Generators: load.Kinds{{Name: "native", Generator: plannertest.Plain{}, JobFiles: true}}}
	plan, err := planner.Compile(sc, inventory, target.Capabilities(l.fake), catalog, options)
	if err != nil {
		l.t.Fatal(describe(l.t, err))
	}
	l.runs = l.t.TempDir()
	tag, err := control.NewTag(l.runs, "r1", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	if cfg.Journal, err = control.CreateJournal(l.runs, control.Header{Run: "r1", Tag: tag}, nil, nil); err != nil {
		l.t.Fatal(err)
	}
	defer cfg.Journal.Close()
	engine, err := executor.New(plan, cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	if l.ready != nil {
		var beside sync.WaitGroup
		beside.Go(func() { l.ready(engine) })
		defer beside.Wait()
	}
	outcome, err := engine.Run(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	if vms, err := l.fake.Owned(context.Background(), tag); err != nil || len(vms) > 0 {
		l.t.Errorf("%d VMs are left (%v)", len(vms), err)
	}
	if err := l.fake.Ready(context.Background()); err != nil {
		l.t.Errorf("left behind: %v", err)
	}
	return outcome
}

func (l *lab) event(e interval.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

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

// operations returns what was done to the target, as "Name subject detail", of the given names only.
func (l *lab) operations(names ...string) []string {
	var out []string
	for _, op := range l.fake.Operations() {
		if slices.Contains(names, op.Name) {
			out = append(out, fmt.Sprintf("%s %s %s", op.Name, op.Subject, op.Detail))
		}
	}
	return out
}

func (l *lab) runner(ctx context.Context, vm target.VM) (load.Runner, error) {
	conn, err := l.fake.DialAgent(ctx, vm)
	if err != nil {
		return nil, err
	}
	return &idle{lab: l, conn: conn}, nil
}

type idle struct {
	lab  *lab
	conn net.Conn
}

func (r *idle) Run(ctx context.Context, w load.Workload, _ load.Sink) error {
	r.lab.mu.Lock()
	r.lab.loads++
	r.lab.mu.Unlock()
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		_, _ = r.conn.Read(make([]byte, 1))
	}()
	defer func() { _ = r.conn.Close(); <-lost }()
	select {
	case <-time.After(max(w.Runtime, 2*time.Second)):
		return nil
	case <-ctx.Done():
		return nil
	case <-lost:
		return load.ErrLost
	}
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
