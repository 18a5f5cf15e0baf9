package run_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/run"
	"github.com/braggdev/bragg/internal/target"
)

// pairs checks that begins and ends of operations belong together, and returns how long each took, by "operation subject".
func (l *lab) pairs() map[string][]time.Duration {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	open, took := map[int]interval.Event{}, map[string][]time.Duration{}
	for _, e := range l.events {
		switch e.Kind {
		case interval.EventOperationStarted:
			if _, twice := open[e.OperationID]; twice || e.OperationID == 0 {
				l.t.Errorf("operation %d began twice", e.OperationID)
			}
			open[e.OperationID] = e
		case interval.EventOperationEnded:
			b, ok := open[e.OperationID]
			if !ok || b.Operation != e.Operation || b.Subject != e.Subject || b.Node != e.Node || b.Part != e.Part || !e.Simulate {
				l.t.Errorf("%+v ends %+v", e, b)
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
		if outcome := l.run(eventful, nil); outcome.Ended != run.Completed {
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
		slow := func(cfg *run.Config) {
			cfg.Runner = func(ctx context.Context, vm target.VM) (load.Runner, error) {
				if vm.Name == "Workers-0001" {
					time.Sleep(time.Until(began.Add(boots[vm.Name]))) // as a connection that is not answered
				}
				if time.Since(began) < boots[vm.Name] {
					return nil, errors.New("it boots")
				}
				return l.runner(ctx, vm)
			}
		}
		if outcome := l.run(head+deployed+"run:\n  - test.Wait: {duration_secs: 1}\n", slow); outcome.Ended != run.Completed {
			t.Fatalf("outcome %+v", outcome)
		}
		took := l.pairs()
		for vm, want := range boots {
			if got := took["boot "+vm]; len(got) != 1 || got[0] < want || got[0] > want+time.Second {
				t.Errorf("%s booted in %v, want %v", vm, got, want)
			}
		}
		for _, e := range l.events {
			if e.Kind == interval.EventOperationEnded && e.SpanNanos > int64(time.Second) {
				t.Errorf("nobody asked for %v before %+v", time.Duration(e.SpanNanos), e)
			}
		}
	})
}

// TestAnswersNobodyAskedFor: clones are powered on and nobody asks until a load starts, a minute later.
func TestAnswersNobodyAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 1)
		outcome := l.run(head+deployed+`run:
  - vm_group.Grow: {vm_group_name: Workers, count_per_node: 2}
  - test.Wait: {duration_secs: 60}
  - workload.Start: {workload_name: Load, runtime_secs: 5}
`, nil)
		if outcome.Ended != run.Completed {
			t.Fatalf("outcome %+v", outcome)
		}
		said := ""
		for _, e := range l.events {
			if e.Kind == interval.EventOperationEnded && e.Operation == interval.OperationBoot && e.Subject == "Workers-0002" {
				said = fmt.Sprint(time.Duration(e.SpanNanos).Round(time.Second))
			}
		}
		if said != "1m0s" {
			t.Errorf("nobody asked for %q, want 1m0s", said)
		}
	})
}
