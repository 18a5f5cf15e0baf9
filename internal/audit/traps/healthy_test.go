package traps

import (
	"slices"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
)

// steps adds the step that starts a load with a runtime.
func (s *scene) steps(workload string, runtime time.Duration) {
	s.plan.Steps = append(s.plan.Steps, plan.Step{Phase: plan.Run, Workload: workload, Starts: &plan.LoadStart{Runtime: runtime}})
}

// TestHealthyRuns: loads of different kinds, without a fault and without a warning.
func TestHealthyRuns(t *testing.T) {
	for name, run := range map[string]func(s *scene){
		"random reads":  func(s *scene) { s.runs("load", reading, 60, fast()) },
		"random writes": func(s *scene) { s.runs("load", writing+"buffer_compress_percentage=50", 60, fast()) },
		"a scan": func(s *scene) {
			s.runs("load", "rw=read bs=1m iodepth=4 size=8g", 60, slower(func(int64) float64 { return 8 }))
		},
		"a database":                  func(s *scene) { s.runs("load", rated, 60, fast()) },
		"a database with checkpoints": func(s *scene) { s.database(30*second, 60) },
		"a queue depth of 1":          func(s *scene) { s.runs("load", "rw=randread bs=4k iodepth=1 size=4g", 60, fast()) },
		"four corners, one after the other": func(s *scene) {
			s.runs("small", "rw=randread bs=8k iodepth=32 size=4g", 60, fast())
			s.runs("large", "rw=read bs=1m iodepth=8 size=4g", 60, slower(func(int64) float64 { return 10 }))
			s.runs("write", "rw=randwrite bs=8k iodepth=32 size=4g", 60, slower(func(int64) float64 { return 2 }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			run(s)
			healthy(t, s, nil)
		})
	}
}

// TestHealthyRealRun: direct I/O on a file of this machine. Rules on the load of the machine may warn: other tests run beside this one.
func TestHealthyRealRun(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for 11 s")
	}
	s := newScene(t)
	s.disks(t.TempDir(), 256<<20, true)
	s.steps("load", 11*time.Second)
	s.really("load", "rw=randread bs=8k iodepth=4", 11*time.Second)
	healthy(t, s, []string{"generator-starved", "generator-stalled", "generator-cpu-bound", "engine-fallback", "depth-not-reached", "coordinated-omission"})
}

// healthy checks that a run passes and has no warning, except for some.
func healthy(t *testing.T, s *scene, except []string) {
	t.Helper()
	summary := s.evaluate(scenario.Result{Name: "latency", Source: scenario.FromGroup, Group: "g", Type: "latency", Aggregate: "mean", Expect: quick})
	for _, f := range summary.Findings {
		if f.Severity != finding.Info && !slices.Contains(except, f.Code) {
			t.Errorf("%s %s: %s", f.Severity, f.Code, f.Claim)
		}
	}
	if summary.Verdict != result.Pass && len(except) == 0 {
		t.Errorf("%s: %s", summary.Verdict, summary.Reason)
	}
	t.Log(claims(summary))
}
