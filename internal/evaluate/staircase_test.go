package evaluate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scaling"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/stat"
)

// growing is a run in which two more VMs start the same load every 10 s, after one. Throughput follows the law exactly; for two
// seconds after each start it is nothing like it.
func growing(t *testing.T, law scaling.Coefficients, steps int, loop interval.Loop) result.Summary {
	t.Helper()
	p := &plan.Plan{Format: plan.Format}
	engines := map[string]interval.Engine{}
	end := int64(steps) * 10e9
	events := []interval.Event{{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"}}
	var intervals []interval.Interval
	for s := range steps {
		name, vms := fmt.Sprintf("Step %d", s), min(2, s+1)
		p.Groups = append(p.Groups, plan.Group{Name: name, VCPUs: 2})
		p.Workloads = append(p.Workloads, plan.Workload{Name: name, Group: name, ConfigFile: "read.fio", Generator: "native"})
		engines[name] = interval.Engine{Name: "native", Loop: loop}
		events = append(events, interval.Event{AtNanos: int64(s) * 10e9, Kind: interval.EventWorkloadStart, Phase: "run", Workload: name, Group: name, Instance: 1})
		for vm := range vms {
			for second := s * 10; second < steps*10; second++ {
				workers := float64(1 + 2*(second/10))
				perVM := uint64(law.Throughput(workers) / workers)
				if second%10 < 2 {
					perVM = 1
				}
				h := &stat.Histogram{}
				h.RecordN(uint64(time.Second)/perVM, perVM)
				iv := interval.Interval{Workload: name, Group: name, VM: fmt.Sprintf("vm-%d-%d", s, vm), Instance: 1, Sequence: int64(second - s*10),
					StartNanos: int64(second) * 1e9, LengthNanos: 1e9, Final: second == steps*10-1}
				iv.Directions[interval.Read] = interval.Traffic{Operations: perVM, Bytes: 4096 * perVM, Service: h}
				intervals = append(intervals, iv)
			}
		}
	}
	for s := range steps {
		name := fmt.Sprintf("Step %d", s)
		events = append(events, interval.Event{AtNanos: end, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: name, Group: name, Instance: 1})
	}
	events = append(events, interval.Event{AtNanos: end, Kind: interval.EventPhaseEnded, Phase: "run"}, interval.Event{AtNanos: end, Kind: interval.EventRunEnded})

	b := recordDriven(t, engines, p, events, intervals, nil)
	s, err := evaluate.Run(context.Background(), evaluate.Input{Bundle: b, Scenario: &scenario.Scenario{}, Ended: result.EndedCompleted})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScaling(t *testing.T) {
	law := scaling.Coefficients{Lambda: 1e5, Sigma: 0.05, Kappa: 0.01}
	run := growing(t, law, 9, interval.LoopClosed)
	s := run.Scaling
	if s == nil || len(s.Steps) != 9 || s.Fit == nil || !s.Answered {
		t.Fatalf("scaling is %+v", s)
	}
	if len(run.Impacts) > 0 {
		t.Errorf("steps have costs as neighbors: %+v", run.Impacts)
	}
	for i, step := range s.Steps {
		if want := law.Throughput(float64(1 + 2*i)); step.Workers != 1+2*i || !within(float64(step.Throughput), want, 1e-3) {
			t.Errorf("step %d: %d workers, %v IOPS, want %v", i, step.Workers, step.Throughput, want)
		}
		if want := 1e9 * float64(step.Workers) / float64(step.Throughput); !within(float64(step.Median), want, 0.01) {
			t.Errorf("step %d: median %v, want %v", i, step.Median, want)
		}
	}
	if !within(float64(s.Fit.Sigma.Value), law.Sigma, 1e-2) || !within(float64(s.Fit.Kappa.Value), law.Kappa, 1e-2) {
		t.Errorf("fit is %+v, want %+v", s.Fit, law)
	}
	if want := "Throughput peaks near 9.7 workers ("; !strings.HasPrefix(s.Sentence, want) {
		t.Errorf("sentence is %q, want %q…", s.Sentence, want)
	}
	if want := "one VM that runs read.fio"; s.Worker != want || s.Unit != "IOPS" || len(s.Workloads) != 9 {
		t.Errorf("worker %q, unit %q, workloads %v", s.Worker, s.Unit, s.Workloads)
	}
}

func within(got, want, relative float64) bool {
	return got >= want*(1-relative) && got <= want*(1+relative)
}

func TestScalingIsRefused(t *testing.T) {
	law := scaling.Coefficients{Lambda: 1e5, Sigma: 0.05, Kappa: 0.01}
	few := growing(t, law, 4, interval.LoopClosed).Scaling
	if few == nil || few.Fit != nil || few.Answered || !strings.Contains(few.Sentence, "4 different numbers of workers") {
		t.Errorf("four steps: %+v", few)
	}
	if s := growing(t, law, 2, interval.LoopClosed).Scaling; s != nil {
		t.Errorf("two steps are not a staircase: %+v", s)
	}
	// Throughput of an open loop is its rate.
	if s := growing(t, law, 9, interval.LoopOpen).Scaling; s != nil {
		t.Errorf("open loops: %+v", s)
	}
}
