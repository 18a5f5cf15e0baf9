package executor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/target"
)

// scripted returns runners whose loads have a rate and a response time that depend on the VM and the second of the load.
func scripted(l *lab, script func(vm, second int) (operations, nanos uint64)) func(context.Context, target.VM) (load.Runner, error) {
	return func(context.Context, target.VM) (load.Runner, error) {
		return runnerFunc(func(ctx context.Context, w load.Workload, sink load.Sink) error {
			for s := 0; time.Duration(s)*time.Second < w.Runtime; s++ {
				iv := interval.Interval{Workload: w.Name, Group: w.Group, VM: w.VM, Instance: w.Instance, Sequence: int64(s),
					StartNanos: time.Now().UnixNano() - w.ZeroUnixNanos, LengthNanos: int64(time.Second)}
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return nil
				}
				operations, nanos := script(w.Ordinal, s)
				h := &stat.Histogram{}
				h.RecordN(nanos, operations)
				iv.Directions[interval.Read] = interval.Traffic{Operations: operations, Service: h}
				sink.Interval(iv)
			}
			return nil
		}), nil
	}
}

// TestWaitUntilSteady: the wait ends when the last minute of all VMs together was steady, or after its longest time, or with the load;
// the run goes on in all cases.
func TestWaitUntilSteady(t *testing.T) {
	for name, c := range map[string]struct {
		script   func(vm, second int) (operations, nanos uint64)
		runtime  int
		from, to time.Duration // when the wait ends
		message  string
		failed   bool
	}{
		"from the start": {func(_, s int) (uint64, uint64) { return 1000 + uint64(s%7), 1e6 }, 600,
			61 * time.Second, 65 * time.Second, "Load is steady after 1 m ", false},
		"after a ramp": {func(_, s int) (uint64, uint64) { return uint64(100 + 10*min(s, 120)), 1e6 }, 600,
			150 * time.Second, 185 * time.Second, "Load is steady after 2 m ", false},
		"VMs whose sum is steady": {func(vm, s int) (uint64, uint64) { return uint64(1000 + 600*((s/10+vm)%2)), 1e6 }, 600,
			61 * time.Second, 65 * time.Second, "Load is steady after 1 m ", false},
		"a p99 that moves under a rate": {func(_, s int) (uint64, uint64) { return 1000, uint64(1e6 + 4e6*(s/10%2)) }, 600,
			200 * time.Second, 200 * time.Second, "Load did not become steady within 3 m 20 s: the levels of its median response time differ by ", true},
		"a load that ends before": {func(_, s int) (uint64, uint64) { return uint64(100 + 10*s), 1e6 }, 90,
			90 * time.Second, 94 * time.Second, "Load ended before it was steady: its IOPS rose by ", true},
		"a load that is too short": {func(_, _ int) (uint64, uint64) { return 100, 1e6 }, 30,
			30 * time.Second, 34 * time.Second, "Load ended before it was steady: too short to say", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 2)
				engine := l.engine(plannertest.Head+plannertest.Deployed+fmt.Sprintf(`run:
  - workload.Start: {workload_name: Load, runtime_secs: %d, async: True}
  - workload.Wait: {workload_name: Load, until: steady, window_secs: 60, max_secs: 200}
  - workload.Wait: {workload_name: Load}
`, c.runtime), func(cfg *executor.Config) { cfg.Runner = scripted(l, c.script) })
				if outcome, _ := engine.Run(t.Context()); outcome.Ended != executor.Completed {
					t.Fatalf("%+v", outcome)
				}
				var found []interval.Event
				for _, e := range l.Events {
					if e.Kind == interval.EventSteady {
						found = append(found, e)
					}
				}
				if len(found) != 1 {
					t.Fatalf("%d events", len(found))
				}
				e := found[0]
				if took := time.Duration(e.SpanNanos); took < c.from || took > c.to || !strings.HasPrefix(e.Message, c.message) ||
					(e.Error != "") != c.failed || e.Workload != "Load" || e.Instance != 1 {
					t.Errorf("after %v: %+v, want %v to %v: %s", took, e, c.from, c.to, c.message)
				}
				l.MustBeClean()
			})
		})
	}
}
