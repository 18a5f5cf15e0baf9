package evaluate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/result/rollup"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/testreq"
)

// eventful writes a run with everything that intervals can have: loads on several VMs, open and closed loops, prefills, second starts,
// steps at any time with or without splits, gaps, stalls, failures, operations that wait or begin early, late delivery.
type eventful struct {
	*rand.Rand
	w       *result.Writer
	seconds int64
	steps   []int64
}

func (r *eventful) chance(p float64) bool { return r.Float64() < p }

func (r *eventful) histogram(n uint64) *stat.Histogram {
	h := &stat.Histogram{}
	for range n {
		h.Record(uint64(1e5 + 3e6*r.ExpFloat64()*r.ExpFloat64()))
	}
	if r.chance(0.02) {
		h.Record(uint64(r.Int64N(20e9)))
	}
	return h
}

func (r *eventful) traffic(open bool, n uint64) (t interval.Traffics) {
	for d := range interval.DirectionCount {
		if n == 0 || d > 0 && r.chance(0.5) {
			continue
		}
		h := r.histogram(n)
		t[d] = interval.Traffic{Operations: h.Count(), Bytes: 4096 * h.Count(), Service: h}
		if open {
			t[d].Response = r.histogram(h.Count() - 1)
		}
		if r.chance(0.03) {
			t[d].Errors = map[string]uint64{"EIO": 1 + r.Uint64N(3)}
			t[d].Failed = r.histogram(1)
		}
	}
	return t
}

// load lists the intervals of one start of a workload on one VM.
func (r *eventful) load(of interval.Interval, from, to int64, open bool) (list []interval.Interval) {
	splits := r.chance(0.8)
	for at := from; at < to; {
		end := min((at/1e9+1)*1e9, to)
		for _, s := range r.steps {
			if splits && s > at && s < end {
				end = s
			}
		}
		iv := of
		iv.StartNanos, iv.LengthNanos = at, end-at
		busy := uint64(1 + r.IntN(6))
		if r.chance(0.05) {
			busy = 0
		}
		iv.Directions = r.traffic(open, busy)
		iv.CPUNanos, iv.InFlight = r.Int64N(1e9), r.Uint64N(9)
		iv.Gaps = interval.Gaps{{FromNanos: 0, ToNanos: r.Int64N(1 + (end-at)/2)}, {FromNanos: end - at - r.Int64N(1+(end-at)/2), ToNanos: end - at}}
		iv.Gauges = interval.GaugeValues{r.Float64()}
		if open {
			iv.Due, iv.NotIssued, iv.Backlog = r.Uint64N(10), r.Uint64N(2), r.Uint64N(2)
		}
		if r.chance(0.03) {
			iv.Waiting = r.histogram(2)
		}
		if r.chance(0.03) && busy > 0 {
			part := interval.Early{FromNanos: -1e9}
			part.Directions[0].Operations, part.Directions[0].Service = 1, &stat.Histogram{}
			part.Directions[0].Service.Record(iv.Directions[0].Service.Max())
			iv.Early = []interval.Early{part}
		}
		if r.chance(0.03) {
			iv.StalledNanos = iv.LengthNanos
		}
		iv.Final = end == to && r.chance(0.9)
		of.Sequence++
		if at = end; !r.chance(0.02) {
			list = append(list, iv)
		} else if r.chance(0.2) {
			at = min(at+r.Int64N(100e9), to)
		}
	}
	return list
}

func (r *eventful) write(t *testing.T) {
	end := r.seconds * 1e9
	from := r.Int64N(3e9)
	event := func(e interval.Event) {
		e.Phase = "run"
		if err := r.w.Event(e); err != nil {
			t.Fatal(err)
		}
	}
	event(interval.Event{Kind: interval.EventRunStarted})
	for vm := range 3 {
		event(interval.Event{Kind: interval.EventPlaced, Subject: fmt.Sprintf("g-%d", vm), Group: "g", Node: fmt.Sprintf("node-%d", vm%2)})
	}
	event(interval.Event{AtNanos: from, Kind: interval.EventPhaseStarted})
	var all [][]interval.Interval
	for _, workload := range []string{"OLTP", "Rated"} {
		for instance, at := 1, from; at < end-2e9; instance++ {
			until := end
			if r.chance(0.5) {
				until = at + 1e9 + r.Int64N(end-at-1e9)
			}
			event(interval.Event{AtNanos: at, Kind: interval.EventWorkloadStart, Workload: workload, Group: "g", Instance: instance})
			event(interval.Event{AtNanos: until, Kind: interval.EventWorkloadEnd, Workload: workload, Group: "g", Instance: instance})
			for vm := range 3 {
				of := interval.Interval{Workload: workload, Group: "g", VM: fmt.Sprintf("g-%d", vm), Instance: instance}
				all = append(all, r.load(of, at, until, workload == "Rated"))
			}
			at = until + r.Int64N(20e9)
		}
	}
	all = append(all, r.load(interval.Interval{Workload: "OLTP", Group: "g", VM: "g-3", Instance: 1, Prefill: true}, 0, from+1, false))
	for i, s := range r.steps {
		e := interval.Event{AtNanos: s, Kind: interval.EventStepStarted, Step: "nodes.PowerOff", Label: fmt.Sprint("step ", i), StepID: i + 1, Subject: "node-1"}
		event(e)
		e.AtNanos, e.Kind = s+r.Int64N(2e9), interval.EventStepEnded
		event(e)
	}
	event(interval.Event{AtNanos: end, Kind: interval.EventPhaseEnded})
	event(interval.Event{AtNanos: end, Kind: interval.EventRunEnded})
	r.deliver(t, all)
}

// deliver writes intervals about when they end, some much later.
func (r *eventful) deliver(t *testing.T, streams [][]interval.Interval) {
	late := make([]int64, len(streams))
	for second := int64(1); ; second++ {
		left := false
		for i := range streams {
			if r.chance(0.002) {
				late[i] = second + r.Int64N(60)
			}
			for len(streams[i]) > 0 && streams[i][0].EndNanos() <= second*1e9 && second >= late[i] {
				if err := r.w.Interval(streams[i][0]); err != nil {
					t.Fatal(err)
				}
				streams[i] = streams[i][1:]
			}
			left = left || len(streams[i]) > 0
		}
		if err := r.w.Flush(); err != nil {
			t.Fatal(err)
		}
		if !left {
			return
		}
	}
}

// TestRollupsChangeNothing: the summary of a run is the same, to the last digit, from single intervals, from intervals that are merged
// while they are read, and from the rollups of the bundle, whole, cut off or damaged.
func TestRollupsChangeNothing(t *testing.T) {
	const g = "g"
	byVM := []scenario.Result{
		{Name: "IOPS", Source: scenario.FromGroup, Group: g, Type: "iops"},
		{Name: "Latency", Source: scenario.FromGroup, Group: g, Type: "latency"},
		{Name: "Bandwidth", Source: scenario.FromWorkload, Workload: "OLTP", Type: "bandwidth", Aggregate: "sum", WarmUp: "auto"},
	}
	together := append(byVM[:1:1], []scenario.Result{
		{Name: "Latency of all", Source: scenario.FromGroup, Group: g, Type: "latency", Aggregate: "mean"},
		{Name: "Latency of one", Source: scenario.FromWorkload, Workload: "Rated", Mask: "OLTP", Type: "latency", Aggregate: "max"},
	}...)
	for seed, c := range []struct {
		seconds int64
		results []scenario.Result
	}{{40, together}, {150, byVM}, {400, byVM}, {900, byVM}, {900, together}, {2000, byVM}, {2000, together}, {15_500, together[:2]}} {
		t.Run(fmt.Sprintf("seed %d, %d s", seed, c.seconds), func(t *testing.T) {
			if testing.Short() && c.seconds > 1000 {
				t.Skip("a long run")
			}
			if c.seconds > 10_000 {
				testreq.Soak(t, testreq.StatisticsVariable, "a run of hours, with the results and events of shorter ones")
			}
			dir := filepath.Join(t.TempDir(), "run")
			m := result.Manifest{Run: "run", Created: time.Unix(1_700_000_000, 0), Engines: map[string]interval.Engine{
				"OLTP":  {Name: "native", Loop: interval.LoopClosed, Gauges: []interval.Gauge{{Name: "depth"}}},
				"Rated": {Name: "native", Loop: interval.LoopOpen},
			}}
			w, err := result.Create(dir, m)
			if err != nil {
				t.Fatal(err)
			}
			r := &eventful{Rand: rand.New(rand.NewPCG(uint64(seed), 7)), w: w, seconds: c.seconds}
			for range r.IntN(4) {
				r.steps = append(r.steps, r.Int64N(c.seconds*1e9))
			}
			r.write(t)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			compareReadings(t, dir, c.results)
		})
	}
}

// compareReadings evaluates a bundle in every way.
func compareReadings(t *testing.T, dir string, results []scenario.Result) {
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	in := evaluate.Input{Bundle: b, Scenario: &scenario.Scenario{Results: results}, Ended: result.EndedCompleted}
	summary := func(in evaluate.Input) string {
		s, err := evaluate.Run(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(s, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	want := summary(evaluate.OneByOne(in))
	path := filepath.Join(dir, "rollups.ndjson.zst")
	whole, err := os.ReadFile(path)
	if err != nil || len(whole) == 0 {
		t.Fatalf("no rollups: %v", err)
	}
	rest := bytes.Clone(whole)
	rest[len(rest)/2] ^= 0x55
	for _, c := range []struct {
		name string
		text []byte
	}{{"whole", whole}, {"damaged", rest}, {"cut off", whole[:2*len(whole)/3]}, {"without their begin", whole[len(whole)/3:]}, {"none", nil}} {
		if err := os.WriteFile(path, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := summary(in); got != want {
			t.Errorf("with rollups %s: %s", c.name, firstDifference(got, want))
		}
	}
	if n := usedRecords(t, b, whole, path); n == 0 {
		t.Error("no record was used")
	}
}

// TestSealedRollups: rollups that are not the sealed ones are not used, as they could change numbers.
func TestSealedRollups(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := result.Create(dir, result.Manifest{Run: "run", Created: time.Unix(1_700_000_000, 0)})
	if err != nil {
		t.Fatal(err)
	}
	r := &eventful{Rand: rand.New(rand.NewPCG(1, 7)), w: w, seconds: 150}
	r.write(t)
	if err := w.Seal(result.Summary{Verdict: result.Pass, Ended: result.EndedCompleted}); err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	path := filepath.Join(dir, "rollups.ndjson.zst")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sealed, changed, none := usedRecords(t, b, whole, path), usedRecords(t, b, append(whole, whole...), path), usedRecords(t, b, nil, path)
	if sealed == none || changed != none {
		t.Errorf("%d merged intervals with the sealed rollups, %d with others, %d with none: want others as none", sealed, changed, none)
	}
}

// usedRecords counts merged intervals that are longer than the seconds of which they are made, without any cut.
func usedRecords(t *testing.T, b *result.Bundle, rollups []byte, path string) (merged int) {
	if err := os.WriteFile(path, rollups, 0o600); err != nil {
		t.Fatal(err)
	}
	for batch, err := range b.Batches(context.Background(), rollup.Cuts{}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range batch.Merged {
			if batch.Merged[i].LengthNanos > 1e9 {
				merged++
			}
		}
	}
	return merged
}

func firstDifference(got, want string) string {
	g, w := bytes.Split([]byte(got), []byte("\n")), bytes.Split([]byte(want), []byte("\n"))
	for i := range min(len(g), len(w)) {
		if !bytes.Equal(g[i], w[i]) {
			return fmt.Sprintf("line %d: %s, one by one %s (after %s)", i, g[i], w[i], bytes.Join(w[max(0, i-12):i], []byte(" ")))
		}
	}
	return fmt.Sprintf("%d and %d lines", len(g), len(w))
}
