package executor_test

import (
	"testing"
	"testing/synctest"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target/fake"
)

// limited is a target that needs to know the maximum number of nodes that are off at once.
type limited struct {
	*fake.Target
	reported []int
}

func (l *limited) LimitNodesOff(count int) { l.reported = append(l.reported, count) }

// A target hears how many nodes the scenario has off at once at most, before anything is done.
func TestNodesOffAreDeclared(t *testing.T) {
	for text, want := range map[string]int{
		eventful: 2,
		plannertest.Head + plannertest.Deployed + "run:\n  - test.Wait: {duration_secs: 1}\n":                                                                                             0,
		plannertest.Head + plannertest.Deployed + "run:\n  - nodes.PowerOff: {nodes: all}\n":                                                                                              3,
		plannertest.Head + plannertest.Deployed + "run:\n  - meta.RollingUpgrade: {}\n":                                                                                                   1,
		plannertest.Head + plannertest.Deployed + "run:\n  - nodes.PowerOff: {nodes: 0}\n  - nodes.PowerOff: {nodes: 0}\n  - nodes.PowerOn: {nodes: 0}\n  - nodes.Shutdown: {nodes: 2}\n": 1,
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, 3)
			tgt := &limited{Target: l.Fake}
			outcome := l.run(text, func(c *executor.Config) { c.Target = tgt })
			if len(tgt.reported) != 1 || tgt.reported[0] != want || outcome.Ended != executor.Completed {
				t.Errorf("reported %v, want %d; %+v\n%s", tgt.reported, want, outcome, text)
			}
		})
	}
}
