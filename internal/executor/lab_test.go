package executor_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/executor/executortest"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab runs scenarios given as text.
type lab struct{ *executortest.Lab }

func newLab(t *testing.T, nodes int) *lab {
	t.Helper()
	return &lab{executortest.New(t, nodes)}
}

// planOf plans the scenario in text.
func (l *lab) planOf(text string) *planner.Plan {
	l.T.Helper()
	return l.Plan(plannertest.Load(l.T, text), planner.Options{Seed: 7})
}

// engine prepares a run of the scenario in text.
func (l *lab) engine(text string, change func(*executor.Config)) *executor.Engine {
	l.T.Helper()
	return l.Engine(l.planOf(text), change)
}

// run executes the scenario in text to its end.
func (l *lab) run(text string, change func(*executor.Config)) executor.Outcome {
	l.T.Helper()
	return l.Run(l.planOf(text), change)
}

// stepErrors returns how steps of a name ended.
func (l *lab) stepErrors(step string) []string {
	l.Lock()
	defer l.Unlock()
	var out []string
	for _, e := range l.Events {
		if e.Kind == interval.EventStepEnded && e.Step == step {
			out = append(out, e.Error)
		}
	}
	return out
}
