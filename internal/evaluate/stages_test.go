package evaluate_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/stat"
)

// stage is one of a load whose stages take ten seconds, with a pause of one before each but the first. Its first two seconds, which do
// not count, have ten times the operations, and its pause has none.
type stage struct {
	rate   uint64 // on each VM
	median time.Duration
}

const stageSkip = 2e9

// curved is a run of a load on two VMs, of which the second one begins 0.3 s later.
func curved(t *testing.T, stages []stage) result.Summary {
	t.Helper()
	engine := interval.Engine{Name: "vdbench", Loop: interval.LoopOpen, Gauges: []interval.Gauge{{Name: "other"}, {Name: "run", Meaning: interval.GaugeStage}}}
	p := &plan.Plan{Format: plan.Format, Groups: []plan.Group{{Name: "G"}}, Workloads: []plan.Workload{{Name: "Load", Group: "G", Generator: "vdbench"}}}
	var intervals []interval.Interval
	for i, s := range stages {
		engine.Stages = append(engine.Stages, interval.Stage{Name: "rate " + string(rune('A'+i)), Curve: 1, Rate: float64(i), SkipNanos: stageSkip})
		for vm, name := range []string{"vm-1", "vm-2"} {
			for second := range 11 {
				rate, gauge := s.rate, float64(i+1)
				switch {
				case second == 10:
					rate, gauge = 0, math.NaN()
				case second < 2:
					rate *= 10
				}
				if i == len(stages)-1 && second == 10 {
					continue
				}
				iv := interval.Interval{Workload: "Load", Group: "G", VM: name, Instance: 1, Sequence: int64(i*11 + second), LengthNanos: 1e9,
					StartNanos: int64(i*11+second)*1e9 + int64(vm)*3e8, Gauges: interval.GaugeValues{7, gauge}, Final: i == len(stages)-1 && second == 9}
				if rate > 0 {
					h := &stat.Histogram{}
					h.RecordN(uint64(s.median), rate)
					iv.Directions[interval.Read] = interval.Traffic{Operations: rate, Bytes: 4096 * rate, Service: h, Response: h.Clone()}
				}
				intervals = append(intervals, iv)
			}
		}
	}
	end := int64(len(stages)) * 11e9
	event := func(at int64, kind interval.EventKind) interval.Event {
		return interval.Event{AtNanos: at, Kind: kind, Phase: "run", Workload: "Load", Group: "G", Instance: 1}
	}
	events := []interval.Event{{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"}, event(0, interval.EventWorkloadStart), event(end, interval.EventWorkloadEnd),
		{AtNanos: end, Kind: interval.EventPhaseEnded, Phase: "run"}, {AtNanos: end, Kind: interval.EventRunEnded}}
	b := recordDriven(t, map[string]interval.Engine{"Load": engine}, p, events, intervals, nil)
	s, err := evaluate.Run(context.Background(), evaluate.Input{Bundle: b, Scenario: &scenario.Scenario{}, Ended: result.EndedCompleted})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each stage has its own numbers, without its beginning and the pauses, and the curve says where response time leaves its floor.
func TestStages(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		stages []stage
		want   string
	}{
		{[]stage{{1000, 9 * ms}, {100, ms}, {300, ms}, {500, 4 * ms}, {900, 20 * ms}},
			"Load: the median response time leaves its floor of 1 ms between 600 IOPS and 1k IOPS; p99 leaves its floor of 1 ms between 600 IOPS and 1k IOPS; the maximum is 2k IOPS."},
		{[]stage{{1000, 9 * ms}, {100, ms}, {300, ms}, {900, ms}},
			"Load: the median response time stays below twice its floor of 1 ms up to 1.8k IOPS; p99 stays below twice its floor of 1 ms up to 1.8k IOPS; the maximum is 2k IOPS."},
		{[]stage{{1000, 9 * ms}, {100, 3 * ms}, {300, ms}, {900, 8 * ms}},
			"Load: the median response time scatters too much to have a floor (1 ms to 8 ms); p99 scatters too much to have a floor (1 ms to 8 ms); the maximum is 2k IOPS."},
		{[]stage{{1000, 9 * ms}, {100, ms}, {300, ms}}, ""},
	} {
		all := curved(t, c.stages).Stages
		if len(all) != 1 || len(all[0].List) != len(c.stages) || all[0].Workload != "Load" || all[0].Unit != "IOPS" {
			t.Fatalf("%+v", all)
		}
		for i, s := range all[0].List {
			if want := c.stages[i]; s.VMs != 2 || s.Seconds != 8 || s.Rate != result.Number(2*want.rate) || s.Bytes != result.Number(8192*want.rate) ||
				math.Abs(float64(s.Median)/float64(want.median)-1) > 0.02 || math.Abs(float64(s.P99)/float64(want.median)-1) > 0.02 {
				t.Errorf("stage %d: %+v, want %+v", i+1, s, want)
			}
		}
		if got := strings.Join(all[0].Sentences, "|"); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
	if all := curved(t, []stage{{1000, time.Millisecond}}).Stages; len(all) != 1 || len(all[0].List) != 1 || all[0].List[0].Rate != 2000 {
		t.Errorf("a load of one stage has %+v", all)
	}
}
