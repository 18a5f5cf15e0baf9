package executor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
)

// strayed runs a scenario in which a VM is moved from outside when a step begins, and returns the events about it.
func strayed(t *testing.T, steps, when, to string) (placed, reported []interval.Event) {
	t.Helper()
	l := newLab(t, 2)
	engine := l.engine(plannertest.Head+plannertest.Deployed+steps, func(c *executor.Config) {
		note := c.Events
		c.Events = func(e interval.Event) {
			if e.Kind == interval.EventStepStarted && e.Step == when {
				l.Fake.Stray("Workers-0001", to)
			}
			note(e)
		}
	})
	outcome, err := engine.Run(t.Context())
	if err != nil || outcome.Ended != executor.Completed {
		t.Fatal(outcome, err)
	}
	for _, e := range l.Events {
		switch {
		case e.Kind == interval.EventPlaced && e.Unasked:
			placed = append(placed, e)
		case e.Kind == interval.EventDisturbance:
			reported = append(reported, e)
		}
	}
	return placed, reported
}

// TestStrayIsTold: a VM that was moved from outside the run is reported once, with the time range in which it moved.
func TestStrayIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		steps  string
		at     time.Duration // when it is noticed at the latest
		within time.Duration
	}{
		"in the middle":  {"run:\n  - test.Wait: {duration_secs: 45}\n  - check.ClusterReady: {}\n  - test.Wait: {duration_secs: 300}\n", 60 * time.Second, 30 * time.Second},
		"at the end":     {"run:\n  - test.Wait: {duration_secs: 5}\n  - check.ClusterReady: {}\n  - test.Wait: {duration_secs: 5}\n", 10 * time.Second, 10 * time.Second},
		"before a step":  {"run:\n  - check.ClusterReady: {}\n  - vm_group.MigrateGroup: {vm_group_name: Workers, from_node: 0, to_node: 1}\n", time.Second, time.Second},
		"before a clone": {"run:\n  - test.Wait: {duration_secs: 7}\n  - check.ClusterReady: {}\n  - vm_group.Grow: {vm_group_name: Workers, count_per_cluster: 3}\n", 7 * time.Second, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				placed, reported := strayed(t, c.steps, "check.ClusterReady", "node-2")
				if len(placed) != 1 || len(reported) != 1 {
					t.Fatalf("placed %+v, reported %+v", placed, reported)
				}
				p := placed[0]
				if p.Subject != "Workers-0001" || p.Group != "Workers" || p.From != "node-1" || p.Node != "node-2" {
					t.Errorf("placed %+v", p)
				}
				if at, span := time.Duration(p.AtNanos), time.Duration(p.SpanNanos); at > c.at || span > c.within {
					t.Errorf("noticed at %v, within %v", at, span)
				}
				if !strings.Contains(reported[0].Message, "Workers-0001 is on node-2 and no longer on node-1") {
					t.Error(reported[0].Message)
				}
			})
		})
	}
}

// TestMovesOfStepsAreNoStrays, also when a migration fails half-way and a step finds the VM where it was to go.
func TestMovesOfStepsAreNoStrays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		placed, reported := strayed(t, `run:
  - vm_group.MigrateGroup: {vm_group_name: Workers, from_node: 0, to_node: 1}
  - test.Wait: {duration_secs: 100}
  - vm_group.ResetGroupPlacement: {vm_group_name: Workers}
  - test.Wait: {duration_secs: 100}
  - nodes.PowerOff: {nodes: 1}
  - test.Wait: {duration_secs: 100}
`, "none", "")
		if len(placed)+len(reported) > 0 {
			t.Errorf("placed %+v, reported %+v", placed, reported)
		}
	})
}

// TestMovesAfterCuts: a VM that restarts on another node because a step has powered off its own, and one that moves back,
// count as moved by the platform. All other moves, and later moves of the same VM, count as moved from outside.
func TestMovesAfterCuts(t *testing.T) {
	const wait = "  - test.Wait: {duration_secs: 45}\n"
	for name, c := range map[string]struct {
		steps string
		moves map[string][2]string // before the step of that name ends
		want  []string             // VM, from, to, why
	}{
		"power cut": {"  - nodes.PowerOff: {nodes: 0}\n" + wait, map[string][2]string{"nodes.PowerOff": {"Workers-0001", "node-2"}},
			[]string{"Workers-0001 node-1 node-2 platform"}},
		"shutdown": {"  - nodes.Shutdown: {nodes: 0}\n" + wait, map[string][2]string{"nodes.Shutdown": {"Workers-0001", "node-3"}},
			[]string{"Workers-0001 node-1 node-3 platform"}},
		"back again": {"  - nodes.PowerOff: {nodes: 0}\n" + wait + "  - nodes.PowerOn: {nodes: 0}\n" + wait + "  - check.ClusterReady: {}\n" + wait,
			map[string][2]string{"nodes.PowerOff": {"Workers-0001", "node-2"}, "nodes.PowerOn": {"Workers-0001", "node-1"}, "check.ClusterReady": {"Workers-0001", "node-3"}},
			[]string{"Workers-0001 node-1 node-2 platform", "Workers-0001 node-2 node-1 platform", "Workers-0001 node-1 node-3 unknown"}},
		"on from there": {"  - nodes.PowerOff: {nodes: 0}\n" + wait + "  - nodes.PowerOn: {nodes: 0}\n" + wait,
			map[string][2]string{"nodes.PowerOff": {"Workers-0001", "node-2"}, "nodes.PowerOn": {"Workers-0001", "node-3"}},
			[]string{"Workers-0001 node-1 node-2 platform", "Workers-0001 node-2 node-3 unknown"}},
		"of another node": {"  - nodes.PowerOff: {nodes: 0}\n" + wait, map[string][2]string{"nodes.PowerOff": {"Workers-0002", "node-3"}},
			[]string{"Workers-0002 node-2 node-3 unknown"}},
		"it stayed, and then": {"  - nodes.PowerOff: {nodes: 0}\n  - nodes.PowerOn: {nodes: 0}\n  - vm_group.PowerOn: {vm_group_name: Workers}\n" + wait +
			"  - check.ClusterReady: {}\n" + wait, map[string][2]string{"check.ClusterReady": {"Workers-0001", "node-2"}},
			[]string{"Workers-0001 node-1 node-2 unknown"}},
		"late": {"  - nodes.PowerOff: {nodes: 0}\n  - nodes.PowerOn: {nodes: 0}\n" + wait + "  - check.ClusterReady: {}\n" + wait,
			map[string][2]string{"check.ClusterReady": {"Workers-0001", "node-2"}}, // it never ran on its node again
			[]string{"Workers-0001 node-1 node-2 platform"}},
		"a step takes it back": {"  - nodes.PowerOff: {nodes: 0}\n" + wait + "  - nodes.PowerOn: {nodes: 0}\n  - vm_group.ResetGroupPlacement: {vm_group_name: Workers}\n" +
			"  - check.ClusterReady: {}\n" + wait,
			map[string][2]string{"nodes.PowerOff": {"Workers-0001", "node-2"}, "check.ClusterReady": {"Workers-0001", "node-2"}},
			[]string{"Workers-0001 node-1 node-2 platform", "Workers-0001 node-1 node-2 unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 3)
				engine := l.engine(plannertest.Head+plannertest.Deployed+"run:\n"+c.steps, func(cfg *executor.Config) {
					note := cfg.Events
					cfg.Events = func(e interval.Event) {
						if move, ok := c.moves[e.Step]; ok && e.Kind == interval.EventStepEnded {
							l.Fake.Stray(move[0], move[1])
						}
						note(e)
					}
				})
				if outcome, err := engine.Run(t.Context()); err != nil || outcome.Ended != executor.Completed {
					t.Fatal(outcome, err)
				}
				if got := moved(t, l.Events); !slices.Equal(got, c.want) {
					t.Errorf("moves %q, want %q", got, c.want)
				}
			})
		})
	}
}

// moved lists the moves that no step made, and checks the text of each.
func moved(t *testing.T, events []interval.Event) []string {
	t.Helper()
	var list []string
	for i, e := range events {
		if e.Kind != interval.EventPlaced || !e.Unasked {
			continue
		}
		kind, who, words := interval.EventDisturbance, "unknown", "no step moved it"
		if e.AfterCut {
			kind, who, words = interval.EventAnnotation, "platform", "the platform moved it"
		}
		if reported := events[i+1]; reported.Kind != kind || reported.Subject != e.Subject || !strings.Contains(reported.Message, words) {
			t.Errorf("%+v is reported as %+v", e, reported)
		}
		list = append(list, strings.Join([]string{e.Subject, e.From, e.Node, who}, " "))
	}
	return list
}

// A power cut that is refused moves no VM, so a move after it came from outside.
func TestMoveAfterRefusedCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.Fake.SetFault(func(op fake.Operation) error {
			if op.Name == "PowerOffNode" {
				return target.PowerForbidden(op.Subject)
			}
			return nil
		})
		engine := l.engine(plannertest.Head+plannertest.Deployed+"run:\n  - nodes.PowerOff: {nodes: 0}\n", func(c *executor.Config) {
			note := c.Events
			c.Events = func(e interval.Event) {
				if e.Step == "nodes.PowerOff" && e.Kind == interval.EventStepEnded {
					l.Fake.Stray("Workers-0001", "node-2")
				}
				note(e)
			}
		})
		if outcome, err := engine.Run(t.Context()); err != nil || outcome.Ended != executor.Failed {
			t.Fatal(outcome, err)
		}
		if got := moved(t, l.Events); !slices.Equal(got, []string{"Workers-0001 node-1 node-2 unknown"}) {
			t.Errorf("moves %q", got)
		}
	})
}

// TestFailedMigrationIsNoStray: the target moves the VM and then reports a failure.
func TestFailedMigrationIsNoStray(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		engine := l.engine(plannertest.Head+plannertest.Deployed+"run:\n  - vm_group.MigrateGroup: {vm_group_name: Workers, from_node: 0, to_node: 1}\n",
			func(c *executor.Config) { c.Target = lyingMover{l.Fake} })
		if outcome, err := engine.Run(t.Context()); err != nil || outcome.Ended != executor.Failed {
			t.Fatal(outcome, err)
		}
		if slices.ContainsFunc(l.Events, func(e interval.Event) bool { return e.Unasked }) {
			t.Errorf("the run's own migration is reported as foreign: %+v", l.Events)
		}
		if !slices.ContainsFunc(l.Events, func(e interval.Event) bool {
			return e.Kind == interval.EventPlaced && e.Subject == "Workers-0001" && e.Node == "node-2"
		}) {
			t.Error("nothing tells where the VM is")
		}
	})
}

// lyingMover moves VMs and reports that it did not.
type lyingMover struct{ *fake.Target }

func (m lyingMover) MigrateVMs(ctx context.Context, tag target.Tag, vms []target.VM, nodeID string) error {
	return errors.Join(m.Target.MigrateVMs(ctx, tag, vms, nodeID), errors.New("timed out"))
}

// Events name what platforms report as targets do.
func TestPlatformEventKinds(t *testing.T) {
	for of, want := range map[target.PlatformEventKind]string{
		target.PlatformRestarted: interval.PlatformRestarted, target.PlatformMoved: interval.PlatformMoved, target.PlatformStopped: interval.PlatformStopped,
		target.PlatformNodeDown: interval.PlatformNodeDown, target.PlatformNodeUp: interval.PlatformNodeUp, target.PlatformAlarm: interval.PlatformAlarm,
	} {
		if string(of) != want {
			t.Errorf("%q is recorded as %q", of, want)
		}
	}
}
