package step_test

import (
	"github.com/braggdev/bragg/internal/step/example"
	"os"
	"sync"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/executor/executortest"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	files := fstest.MapFS{"test.yml": {Data: []byte(text)}, "load.fio": {Data: []byte(example.Job)}, "site.yml": {Data: []byte(example.Playbook)}}
	sc, err := scenario.Load(t.Context(), scenario.Source{FS: files, Name: "example", Trusted: true}, scenario.Options{})
	if err != nil {
		t.Fatalf("%s\n%s", describe(t, err), text)
	}
	return sc
}

// lab runs scenarios that leave nothing behind.
type lab struct {
	*executortest.Lab
	ready func(engine *executor.Engine) // called beside the run when it begins
}

func newLab(t *testing.T, nodes int) *lab {
	t.Helper()
	return &lab{Lab: executortest.New(t, nodes)}
}

// run compiles and executes a scenario. change may replace the target, so that one lacks what the fake has.
func (l *lab) run(sc *scenario.Scenario, options planner.Options, change func(*executor.Config, *target.Inventory)) executor.Outcome {
	l.T.Helper()
	cfg := l.Config()
	plan, err := l.Compile(sc, options, func(inventory *target.Inventory) {
		if change != nil {
			change(&cfg, inventory)
		}
	})
	if err != nil {
		l.T.Fatal(describe(l.T, err))
	}
	engine := l.Engine(plan, func(c *executor.Config) { cfg.Journal = c.Journal; *c = cfg })
	if l.ready != nil {
		var beside sync.WaitGroup
		beside.Go(func() { l.ready(engine) })
		defer beside.Wait()
	}
	outcome, err := engine.Run(l.T.Context())
	if err != nil {
		l.T.Fatal(err)
	}
	l.MustBeClean()
	return outcome
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
