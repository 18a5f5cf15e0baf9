package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/wait"
)

// stores returns free space per node as a function of time, and records when each node was polled.
type stores struct {
	answer func(ctx context.Context, node string, at time.Duration) (target.Space, error)
	start  time.Time

	mu    sync.Mutex
	asked []string // "node-1 5s"
}

func (s *stores) NodeSpace(ctx context.Context, node string) (target.Space, error) {
	at := time.Since(s.start)
	s.mu.Lock()
	s.asked = append(s.asked, fmt.Sprint(node, " ", at.Round(time.Millisecond)))
	s.mu.Unlock()
	return s.answer(ctx, node, at)
}

// of returns the times at which a node was polled.
func (s *stores) of(node string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var at []string
	for _, a := range s.asked {
		if name, when, _ := strings.Cut(a, " "); name == node {
			at = append(at, when)
		}
	}
	return at
}

// guarded watches nodes for so long and returns why the run was stopped, and when.
func guarded(t *testing.T, s *stores, nodes, copies int, limit time.Duration) (stops []error, at time.Duration) {
	t.Helper()
	s.start = time.Now()
	g := &targetGuard{source: s, nodes: target.VirtualNodes(nodes), copies: copies, storages: map[string]*storage{}}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	g.watch(ctx, func(err error) { stops, at = append(stops, err), time.Since(s.start) })
	return stops, at
}

func room(storage string, free, total int64) (target.Space, error) {
	return target.Space{Storage: storage, Place: fmt.Sprintf("pool %q", "vms"), FreeBytes: free, TotalBytes: total}, nil
}

// Storage that is filling up is polled often enough to stop the run above zero at any fill rate, but not long before.
// Storage that is not filling up does not stop the run.
func TestTargetGuardAsksWhatFillsMoreOften(t *testing.T) {
	const total = 1000 * unit.GiB
	for name, c := range map[string]struct {
		perSecond int64
		took      time.Duration // by each look
	}{
		"slowly": {perSecond: 100 * unit.MiB}, "fast": {perSecond: 400 * unit.MiB}, "very fast": {perSecond: 4 * unit.GiB}, "not at all": {},
		"by little": {perSecond: unit.MiB}, "behind slow looks": {400 * unit.MiB, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				free := func(at time.Duration) int64 { return 300*unit.GiB - int64(at.Seconds()*float64(c.perSecond)) }
				s := &stores{answer: func(_ context.Context, _ string, at time.Duration) (target.Space, error) {
					time.Sleep(c.took)
					return room("a", max(0, free(at)), total)
				}}
				stops, at := guarded(t, s, 1, 1, time.Hour)
				asked := len(s.of("node-1"))
				if full := 300 * unit.GiB / max(1, c.perSecond); full > 3600 {
					if len(stops) > 0 || asked > 3600/15+5 {
						t.Errorf("stopped by %v, asked %d times", stops, asked)
					}
					return
				}
				most := unit.GiB + c.perSecond*int64(3+3*c.took.Seconds())
				if left := free(at); len(stops) != 1 || left <= 0 || left >= most {
					t.Fatalf("stops %v at %v with %d bytes free", stops, at, left)
				}
				if asked > int(at.Seconds())/10+60 {
					t.Errorf("asked %d times in %v", asked, at)
				}
			})
		})
	}
}

// A single large file that leaves little more than the required space does not stop the run.
func TestTargetGuardBearsLargeFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stores{answer: func(_ context.Context, _ string, at time.Duration) (target.Space, error) {
			if at > 10*time.Minute {
				return room("a", 3*unit.GiB, 1000*unit.GiB)
			}
			return room("a", 500*unit.GiB, 1000*unit.GiB)
		}}
		if stops, at := guarded(t, s, 1, 1, time.Hour); len(stops) > 0 {
			t.Errorf("stopped by %v at %v", stops, at)
		}
	})
}

// The first readings of nodes that share a storage may be milliseconds apart, with the disk of a new VM between them, which must not count as a rate.
func TestTargetGuardBearsADiskBetweenTwoNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stores{answer: func(ctx context.Context, node string, at time.Duration) (target.Space, error) {
			if node == "node-2" {
				_ = wait.For(ctx, time.Millisecond)
				return room("shared", 90*unit.GiB, 1024*unit.GiB)
			}
			if at < time.Millisecond {
				return room("shared", 100*unit.GiB, 1024*unit.GiB)
			}
			return room("shared", 90*unit.GiB, 1024*unit.GiB)
		}}
		if stops, at := guarded(t, s, 2, 1, time.Minute); len(stops) > 0 {
			t.Errorf("stopped at %v: %v", at, stops)
		}
	})
}

// Another writer fills the storage at once: the first reading that shows it stops the run, and the message has all
// details.
func TestTargetGuardNamesWhatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stores{answer: func(_ context.Context, node string, at time.Duration) (target.Space, error) {
			if node == "node-2" && at > time.Minute {
				return room("b", 10*unit.MiB, 600*unit.MiB)
			}
			return room(node, 400*unit.MiB, 600*unit.MiB)
		}}
		stops, at := guarded(t, s, 3, 3, time.Hour)
		if len(stops) != 1 || at > time.Minute+spacePauseMax+time.Second {
			t.Fatalf("stops %v at %v", stops, at)
		}
		want := `only 10 MiB of 600 MiB are free in pool "vms" of node node-2, `
		var e *diag.Error
		if !strings.Contains(stops[0].Error(), want) || !strings.Contains(stops[0].Error(), "each byte is kept 3 times, and 48 MiB have to stay free") || !errors.As(stops[0], &e) || e.Exit != diag.ExitUndecided || e.Hint == "" {
			t.Errorf("stopped by %q, want %q", stops[0], want)
		}
	})
}

// Nodes that share a storage poll it in turn, and a node that is unreachable, hangs or returns invalid data does not delay
// the others.
func TestTargetGuardOfSharedStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stores{answer: func(ctx context.Context, node string, at time.Duration) (target.Space, error) {
			switch {
			case node == "node-1" && at > 10*time.Minute: // cut off
				<-ctx.Done()
				return target.Space{}, context.Cause(ctx)
			case node == "node-4":
				return target.Space{}, errors.New("switched off")
			case node == "node-5":
				return target.Space{}, nil
			case at > 20*time.Minute:
				return room("shared", 5*unit.MiB, 100*unit.GiB)
			}
			return room("shared", 50*unit.GiB, 100*unit.GiB)
		}}
		stops, at := guarded(t, s, 5, 1, time.Hour)
		if len(stops) != 1 || at < 20*time.Minute || at > 20*time.Minute+spacePauseMax+2*spaceDeadline {
			t.Fatalf("stops %v at %v", stops, at)
		}
		if text := stops[0].Error(); !strings.Contains(text, "nodes node-1, node-2, node-3,") {
			t.Error(text)
		}
		asked := len(s.of("node-1")) + len(s.of("node-2")) + len(s.of("node-3"))
		if most := int(at/spacePauseMax) + 60; asked > most {
			t.Errorf("one storage was read %d times in %v, at most %d were to be", asked, at, most)
		}
	})
}

// TestTargetGuardBearsFailures: errors alone never stop a run, and the guard ends with the run, also in the middle of a look.
func TestTargetGuardBearsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stores{answer: func(ctx context.Context, node string, _ time.Duration) (target.Space, error) {
			if node == "node-1" {
				return target.Space{}, errors.New("no such pool")
			}
			<-ctx.Done()
			return target.Space{}, context.Cause(ctx)
		}}
		if stops, _ := guarded(t, s, 2, 1, 10*time.Minute); len(stops) > 0 {
			t.Errorf("stopped by %v", stops)
		}
	})
	if g := newTargetGuard(struct{ target.Target }{}, target.Inventory{}); g != nil {
		t.Error("a target that tells nothing is watched")
	}
	(*targetGuard)(nil).watch(t.Context(), func(err error) { t.Error(err) })
}

// filler fills the storage when a step begins.
type filler struct {
	step string
	fill func()

	mu  sync.Mutex
	all []interval.Event
}

func (*filler) Begin(*plan.Plan, string)   {}
func (*filler) Interval(interval.Interval) {}
func (f *filler) Event(e interval.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, e)
	if e.Kind == interval.EventStepStarted && e.Step == f.step {
		f.fill()
	}
}

const fillingScenario = `name: filling
display_name: Filling
summary: Load beside another writer
description: For tests of the guard.
tags: [test]
estimated_runtime: 1
vms:
  - db: {template: ubuntu1604, vcpus: 1, ram_mb: 256, data_disks: {count: 1, size: 1}, nodes: ":2", count_per_node: 1}
workloads:
  - Writes: {vm_group: db, config_file: writes.fio}
results:
  - IOPS: {vm_group: db, result_type: iops}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: db}
  - vm_group.PowerOn: {vm_group_name: db}
run:
  - workload.Start: {workload_name: Writes, runtime_secs: 3000, async: True}
  - test.Wait: {duration_secs: 3000}
teardown:
  - cluster.CleanUp: {}
`

func fillingSource() scenario.Source { return withLoad(fillingScenario) }

func withLoad(text string) scenario.Source {
	return scenario.Source{Name: "filling", Trusted: true, FS: fstest.MapFS{
		"test.yml":   {Data: []byte(text)},
		"writes.fio": {Data: []byte("[writes]\nfilename=/dev/sdb\nrw=randwrite\nbs=4k\nsize=4m\nrate_iops=50\ntime_based\n")},
	}}
}

// TestRunStopsBeforeTheStorageIsFull: another writer fills the target's storage while a load runs. The run ends the same
// way as when the controller's own disk space runs low.
func TestRunStopsBeforeTheStorageIsFull(t *testing.T) {
	p, err := Prepare(t.Context(), Order{Source: fillingSource(), Target: "fake:2", Runs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	simulated := p.target.(*fake.Target)
	w := &filler{step: "test.Wait", fill: func() { simulated.Fill(100 * unit.MiB) }}
	out, err := p.Run(t.Context(), RunOptions{Watcher: w})
	if err != nil {
		t.Fatal(err)
	}
	if out.Ended != result.EndedFailed || out.Exit != diag.ExitUndecided || len(out.Problems)+len(out.Left) > 0 {
		t.Errorf("outcome %+v", out)
	}
	for _, want := range []string{"only 100 MiB of 1 PiB are free in the simulated storage of nodes node-1, node-2", "and 1 GiB have to stay free", "free some space there"} {
		if !strings.Contains(out.Reason, want) {
			t.Errorf("the reason is %q, want %q", out.Reason, want)
		}
	}
	if !slices.ContainsFunc(w.all, func(e interval.Event) bool {
		return e.Kind == interval.EventStepEnded && e.Step == "cluster.CleanUp" && e.Error == ""
	}) {
		t.Error("nothing was cleaned up")
	}
}
