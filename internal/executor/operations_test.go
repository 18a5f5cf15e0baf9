package executor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
)

// pairs checks that begins and ends of operations belong together, and returns how long each took, by "operation subject".
func (l *lab) pairs() map[string][]time.Duration {
	l.T.Helper()
	l.Lock()
	defer l.Unlock()
	open, took := map[int]interval.Event{}, map[string][]time.Duration{}
	for _, e := range l.Events {
		switch e.Kind {
		case interval.EventOperationStarted:
			if _, twice := open[e.OperationID]; twice || e.OperationID == 0 {
				l.T.Errorf("operation %d began twice", e.OperationID)
			}
			open[e.OperationID] = e
		case interval.EventOperationEnded:
			b, ok := open[e.OperationID]
			if !ok || b.Operation != e.Operation || b.Subject != e.Subject || b.Node != e.Node || b.Part != e.Part || !e.Simulate {
				l.T.Errorf("%+v ends %+v", e, b)
			}
			delete(open, e.OperationID)
			name := string(e.Operation) + " " + e.Subject
			if e.Error != "" {
				name = "failed " + name
			}
			took[name] = append(took[name], time.Duration(e.AtNanos-b.AtNanos))
		}
	}
	return took
}

func TestOperationsHaveBeginAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		if outcome := l.run(eventful, nil); outcome.Ended != executor.Completed {
			t.Fatalf("outcome %+v", outcome)
		}
		took := l.pairs()
		for name, count := range map[string]int{"deploy ": 1, "deploy Workers-0001": 1, "clone Workers-0004": 1, "clone ": 1,
			"snapshot Workers-0002": 2, "node-off node-1": 1, "node-shutdown node-2": 1, "node-on node-1": 1, "host-up node-1": 1,
			"cluster-ready node-2": 1, "boot Workers-0001": 2, "boot Workers-0004": 1} {
			if len(took[name]) != count {
				t.Errorf("%q ended %d times, want %d; there are %v", name, len(took[name]), count, took)
			}
		}
	})
}

// TestBootsAreTimedOneByOne: VMs take their time until they answer, one of them longer than all others.
func TestBootsAreTimedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		began := time.Now()
		boots := map[string]time.Duration{"Workers-0001": 90 * time.Second, "Workers-0002": 3 * time.Second, "Workers-0003": 20 * time.Second}
		slow := func(cfg *executor.Config) {
			cfg.Runner = func(ctx context.Context, vm target.VM) (load.Runner, error) {
				if vm.Name == "Workers-0001" {
					time.Sleep(time.Until(began.Add(boots[vm.Name]))) // as a connection that is not answered
				}
				if time.Since(began) < boots[vm.Name] {
					return nil, errors.New("it boots")
				}
				return l.Runner(ctx, vm)
			}
		}
		if outcome := l.run(plannertest.Head+plannertest.Deployed+"run:\n  - test.Wait: {duration_secs: 1}\n", slow); outcome.Ended != executor.Completed {
			t.Fatalf("outcome %+v", outcome)
		}
		took := l.pairs()
		for vm, want := range boots {
			if got := took["boot "+vm]; len(got) != 1 || got[0] < want || got[0] > want+time.Second {
				t.Errorf("%s booted in %v, want %v", vm, got, want)
			}
		}
		for _, e := range l.Events {
			if e.Kind == interval.EventOperationEnded && e.SpanNanos > int64(time.Second) {
				t.Errorf("not polled for %v before %+v", time.Duration(e.SpanNanos), e)
			}
		}
	})
}

// TestAnswersNobodyAskedFor: clones are powered on, and are not polled until a load starts a minute later.
func TestAnswersNobodyAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 1)
		outcome := l.run(plannertest.Head+plannertest.Deployed+`run:
  - vm_group.Grow: {vm_group_name: Workers, count_per_node: 2}
  - test.Wait: {duration_secs: 60}
  - workload.Start: {workload_name: Load, runtime_secs: 5}
`, nil)
		if outcome.Ended != executor.Completed {
			t.Fatalf("outcome %+v", outcome)
		}
		said := ""
		for _, e := range l.Events {
			if e.Kind == interval.EventOperationEnded && e.Operation == interval.OperationBoot && e.Subject == "Workers-0002" {
				said = fmt.Sprint(time.Duration(e.SpanNanos).Round(time.Second))
			}
		}
		if said != "1m0s" {
			t.Errorf("not polled for %q, want 1m0s", said)
		}
	})
}

// TestVMsThatTheRunKeptOff: VMs that this run keeps powered off need not be polled, also on a target that can place VMs: a
// VM that the run left powered off was not started by the platform.
func TestVMsThatTheRunKeptOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		if _, places := target.Target(l.Fake).(target.Placer); !places {
			t.Fatal("the target cannot place VMs")
		}
		outcome := l.run(plannertest.Head+plannertest.Deployed+`run:
  - nodes.PowerOff: {nodes: all}
  - test.Wait: {duration_secs: 300}
  - nodes.PowerOn: {nodes: all}
  - test.Wait: {duration_secs: 120}
  - vm_group.PowerOn: {vm_group_name: Workers}
`, nil)
		if outcome.Ended != executor.Completed {
			t.Fatalf("outcome %+v", outcome)
		}
		ended := 0
		for _, e := range l.Events {
			if e.Kind != interval.EventOperationEnded || e.Operation != interval.OperationVMRecovery {
				continue
			}
			ended++
			if e.SpanNanos > int64(2*time.Second) || e.Error != "" {
				t.Errorf("%s: uncertain by %v, %q", e.Subject, time.Duration(e.SpanNanos), e.Error)
			}
		}
		if ended != 2 {
			t.Errorf("%d VMs were seen to answer again, want 2", ended)
		}
	})
}

// telling is a target that reports when the power of a node is gone.
type telling struct{ *fake.Target }

func (t telling) PowerOffNode(ctx context.Context, nodeID string) error {
	now := time.Now()
	err := t.Target.PowerOffNode(ctx, nodeID)
	target.TellPowerChange(ctx, target.PowerChange{Sent: now, Before: now, Seen: now})
	time.Sleep(time.Second) // to be sure
	return err
}

// TestHangingUpForgetsNoRecovery: the connections to agents of a node that lost its power take longer to end than the cut takes. That
// its VMs come back is waited for all the same.
func TestHangingUpForgetsNoRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 1)
		slow := func(cfg *executor.Config) {
			cfg.Target = telling{l.Fake}
			var called atomic.Bool
			cfg.Gone = func(target.VM) {
				if !called.Swap(true) {
					time.Sleep(20 * time.Second)
				}
			}
		}
		outcome := l.run(strings.Replace(plannertest.Head, "count_per_node: 1", "count_per_node: 2", 1)+plannertest.Deployed+`run:
  - nodes.PowerOff: {nodes: 0}
  - nodes.PowerOn: {nodes: 0}
  - vm_group.PowerOn: {vm_group_name: Workers}
  - vm_group.WaitForPowerOn: {vm_group_name: Workers}
`, slow)
		if outcome.Ended != executor.Completed {
			t.Fatalf("outcome %+v", outcome)
		}
		took := l.pairs()
		for _, vm := range []string{"Workers-0001", "Workers-0002"} {
			if len(took["vm-recovery "+vm]) != 1 {
				t.Errorf("no recovery of %s; there are %v", vm, took)
			}
		}
	})
}
