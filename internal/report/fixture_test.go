package report_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

const second = int64(time.Second)

// The fixture is a run of twenty minutes: an OLTP load on four VMs, a node that loses its power after five minutes and
// comes back after twelve. Everything follows from its seed.
const (
	fixtureEnd  = 20 * 60
	fixtureOff  = 5 * 60
	fixtureOn   = 12 * 60
	fixtureFrom = 60 // the run phase begins
)

type fixture struct {
	random  *rand.Rand
	windows []result.Window
	speed   float64 // 1: as usual; other values make another run
	every   int     // seconds between points
}

func newFixture(seed uint64, speed float64) *fixture {
	return &fixture{
		random: rand.New(rand.NewPCG(seed, 1)), speed: speed, every: 1,
		windows: []result.Window{
			{Name: "before nodes.PowerOff", FromNanos: fixtureFrom * second, ToNanos: fixtureOff * second, After: "nodes.PowerOff"},
			{Name: "between nodes.PowerOff and nodes.PowerOn", FromNanos: fixtureOff * second, ToNanos: fixtureOn * second,
				Before: "nodes.PowerOff", After: "nodes.PowerOn"},
			{Name: "after nodes.PowerOn", FromNanos: fixtureOn * second, ToNanos: fixtureEnd * second, Before: "nodes.PowerOn"},
		},
	}
}

// exampleRun is a full run that missed one threshold.
func exampleRun() *document.Run { return newFixture(7, 1).run("20250921-141503-k3v9qd") }

// smallRun is exampleRun with a point every two minutes, for goldens that people read.
func smallRun() *document.Run {
	f := newFixture(7, 1)
	f.every = 120
	return f.run("20250921-141503-k3v9qd")
}

// rehearsalRun is a passed rehearsal on a target that simulates.
func rehearsalRun() *document.Run {
	run := newFixture(11, 1).run("20250921-160000-aaaaaa")
	run.Manifest.Rehearsal = &result.Rehearsal{
		Asked: 90 * time.Second, TimeFactor: 0.0249, SizeFactor: map[string]float64{"OLTP": 0.0039},
		Counts: map[string][2]int{"OLTP": {40, 4}}, Nodes: [2]int{8, 4}, Notes: []string{"Floors lengthen the run phase to 1 m 52 s."},
	}
	run.Manifest.Target.Simulates = map[string]string{
		"node-power": "Switching off a node kills the processes of its VMs; no machine loses its power.",
	}
	run.Summary.Findings = []finding.Finding{{Code: "rehearsal", Severity: finding.Warning,
		Claim:  "This is a rehearsal of 1 m 30 s (time factor 0.0249); its numbers do not describe the full scenario.",
		Advice: "Run the scenario without --rehearse for numbers to compare."}}
	run.Summary.Verdict, run.Summary.Reason = result.Pass, "All steps ended and no threshold was missed."
	for i := range run.Summary.Results {
		for j := range run.Summary.Results[i].Checks {
			run.Summary.Results[i].Checks[j].Passed = true
			run.Summary.Results[i].Checks[j].Value = 4.4e6
		}
	}
	return run
}

func (f *fixture) run(id string) *document.Run {
	run := &document.Run{Manifest: fixtureManifest(id), Plan: json.RawMessage(fixturePlan), Events: fixtureEvents()}
	run.Summary = result.Summary{
		Verdict: result.Failed, Reason: "p99 response time was 41.2 ms between nodes.PowerOff and nodes.PowerOn; the scenario expects less than 20 ms.",
		Ended: result.EndedCompleted, Duration: (fixtureEnd + 12) * second, Windows: f.windows,
		Phases: []result.Window{
			{Name: "setup", FromNanos: 0, ToNanos: fixtureFrom * second},
			{Name: "run", FromNanos: fixtureFrom * second, ToNanos: fixtureEnd * second},
			{Name: "teardown", FromNanos: fixtureEnd * second, ToNanos: (fixtureEnd + 12) * second},
		},
		Results:  []result.Evaluated{f.iops(), f.latency(), f.perVM(), f.cpu(), f.errors(), f.missing()},
		Caveats:  []string{"The clock of node-3 was 12 ms ahead of the others."},
		Findings: fixtureFindings(),
	}
	run.Summary.Loads = f.loads()
	run.Summary.Durations = fixtureDurations()
	return run
}

// level is the share of full speed at a second of the run.
func level(at int) float64 {
	switch {
	case at < fixtureFrom+15:
		return float64(at-fixtureFrom) / 15
	case at >= fixtureOff && at < fixtureOff+25:
		return 0.08
	case at >= fixtureOff && at < fixtureOn:
		return 0.72
	case at >= fixtureOn && at < fixtureOn+90:
		return 0.64
	}
	return 1
}

func (f *fixture) noise(share float64) float64 { return 1 + share*f.random.NormFloat64() }

func (f *fixture) points(full, noise float64, gap func(int) bool) result.Points {
	var points result.Points
	for at := fixtureFrom; at < fixtureEnd; at += f.every {
		value := math.Max(0, full*f.speed*level(at)*f.noise(noise))
		if gap != nil && gap(at) {
			value = math.NaN()
		}
		points = append(points, result.Point{Seconds: float64(at) + 0.5, Value: value})
	}
	return points
}

func (f *fixture) evaluated(name, title, kind, unit string) result.Evaluated {
	return result.Evaluated{Name: name, Title: title, Type: kind, Unit: unit,
		FromNanos: fixtureFrom * second, ToNanos: fixtureEnd * second}
}

// addStats computes the rows of every series over every window from the points.
func (f *fixture) addStats(e *result.Evaluated) {
	windows := append([]result.Window{{FromNanos: e.FromNanos, ToNanos: e.ToNanos}}, f.windows...)
	for _, w := range windows {
		for _, s := range e.Series {
			if s.Statistic == "p99" {
				continue
			}
			e.Stats = append(e.Stats, statsOf(s, w))
		}
	}
}

func statsOf(s result.Series, w result.Window) result.Stats {
	st := result.Stats{Window: w.Name, Series: s.Name, Kind: s.Kind}
	var values []float64
	var sum, squares float64
	for _, p := range s.Points {
		if at := int64(p.Seconds * 1e9); at < w.FromNanos || at >= w.ToNanos {
			continue
		}
		if math.IsNaN(p.Value) {
			st.Gaps++
			continue
		}
		values = append(values, p.Value)
		sum += p.Value
		squares += p.Value * p.Value
	}
	slices.Sort(values)
	n := float64(len(values))
	rank := func(q float64) result.Number {
		if len(values) == 0 {
			return result.Number(math.NaN())
		}
		return result.Number(values[max(0, int(math.Ceil(q*n))-1)])
	}
	mean := sum / n
	st.Count, st.Mean, st.CV = uint64(len(values)), result.Number(mean), result.Number(math.Sqrt(max(0, squares/n-mean*mean))/mean)
	st.Median, st.P95, st.P99, st.P999, st.Max, st.Min = rank(0.5), rank(0.95), rank(0.99), rank(0.999), rank(1), rank(0)
	return st
}

func (f *fixture) iops() result.Evaluated {
	e := f.evaluated("oltp_iops", "OLTP operations", "iops", "IOPS")
	e.Aggregate, e.ReportGroup = "sum", "oltp"
	e.Source = "Device traffic of all 4 VMs of group OLTP in the run phase, summed per second."
	e.Hint = "A cluster that handles the loss of a node well dips shortly and comes back to at least three quarters of its speed."
	expected := 8000.0
	e.Expected = &expected
	e.Bands = []result.Band{{Name: "good", Lower: 7200, Upper: 8800}, {Name: "degraded", Lower: 4000, Upper: 7200}}
	e.Series = []result.Series{{Name: "all", Points: f.points(8000, 0.02, nil)}}
	f.addStats(&e)
	e.Metrics = []result.Metric{{Name: "Variability", Value: e.Stats[0].CV * 100, Unit: "%"}, {Name: "Median", Value: e.Stats[0].Median, Unit: "IOPS"}}
	return e
}

func (f *fixture) latency() result.Evaluated {
	e := f.evaluated("oltp_latency", "OLTP latency", "latency", "ns")
	e.Source = "Merged histograms of every operation of workload OLTP on 4 VMs."
	service, response := result.Series{Name: "OLTP", Kind: "service", Statistic: "mean"}, result.Series{Name: "OLTP", Kind: "response", Statistic: "mean"}
	tail := result.Series{Name: "OLTP", Kind: "response", Statistic: "p99"}
	for at := fixtureFrom; at < fixtureEnd; at += f.every {
		slow := 1 / (0.1 + level(at)) / f.speed
		s := 0.9e6 * slow * f.noise(0.05)
		r := s * (1 + 0.35*slow*math.Abs(f.noise(0.2)))
		for line, v := range map[*result.Series]float64{&service: s, &response: r, &tail: r * 4.1} {
			line.Points = append(line.Points, result.Point{Seconds: float64(at) + 0.5, Value: math.Abs(v)})
		}
	}
	e.Series = []result.Series{service, response, tail}
	f.addStats(&e)
	for i := range e.Stats {
		s := &e.Stats[i]
		s.Intervals = &result.IntervalStats{Count: s.Count, Mean: s.Mean * 1.1, Median: s.Median * 1.2, Max: s.Max / 2, Min: s.Min * 2, CV: s.CV / 3}
	}
	e.Metrics = []result.Metric{{Name: "Median", Value: e.Stats[0].Median, Unit: "ns", XRay: &e.Stats[0].Intervals.Median}}
	e.Checks = []result.Check{{Text: "p99 < 20ms", Window: f.windows[1].Name, Value: 41.2e6, Unit: "ns"}, {Text: "mean < 5ms", Value: 2.1e6, Unit: "ns", Passed: true}}
	return e
}

func (f *fixture) perVM() result.Evaluated {
	e := f.evaluated("oltp_per_vm", "OLTP bandwidth of each VM", "bandwidth", "B/s")
	e.Source = "Device traffic of each VM of group OLTP."
	for vm := 1; vm <= 4; vm++ {
		var gap func(int) bool
		if vm == 3 {
			gap = func(at int) bool { return at >= fixtureOff && at < fixtureOn+40 }
		}
		name := fmt.Sprintf("OLTP-%04d", vm)
		e.Series = append(e.Series, result.Series{Name: name, Labels: map[string]string{"vm": name}, Points: f.points(16.4e6, 0.03, gap)})
	}
	f.addStats(&e)
	return e
}

func (f *fixture) cpu() result.Evaluated {
	e := f.evaluated("cpu", "Cluster CPU", "metric", "MHz")
	e.Source, e.Simulated = "CPU use of each node as the target reports it, every 5 s.", true
	for node := 1; node <= 4; node++ {
		s := result.Series{Name: fmt.Sprintf("node-%d", node)}
		for at := fixtureFrom; at < fixtureEnd; at += max(5, f.every) {
			v := 9200 * (0.3 + 0.5*level(at)) * f.noise(0.04)
			if node == 3 && at >= fixtureOff && at < fixtureOn {
				v = math.NaN()
			}
			s.Points = append(s.Points, result.Point{Seconds: float64(at), Value: v})
		}
		e.Series = append(e.Series, s)
	}
	f.addStats(&e)
	return e
}

func (f *fixture) errors() result.Evaluated {
	e := f.evaluated("oltp_errors", "OLTP errors", "errors", "errors")
	e.Source = "Failed operations of workload OLTP, per second."
	s := result.Series{Name: "all"}
	for at := fixtureFrom; at < fixtureEnd; at += f.every {
		v := 0.0
		if at >= fixtureOff && at < fixtureOff+3 {
			v = 3
		}
		s.Points = append(s.Points, result.Point{Seconds: float64(at) + 0.5, Value: v})
	}
	e.Series = []result.Series{s}
	f.addStats(&e)
	fail := false
	e.Metrics = []result.Metric{{Name: "AnyFail", Value: 9, Unit: "errors", Pass: &fail}}
	return e
}

func (f *fixture) missing() result.Evaluated {
	e := f.evaluated("pg_transactions", "Database transactions", "generic", "")
	e.Missing = "No sample of pg_stat_database_xact_commit was scraped: nothing answered on port 9187 of any VM."
	return e
}

func (f *fixture) loads() []result.LoadSummary {
	list := []result.LoadSummary{
		{Workload: "OLTP", Group: "OLTP", Instance: 1, Prefill: true, Engines: []interval.Engine{nativeEngine()}, VMs: 4,
			FromNanos: 4 * second, ToNanos: 51 * second, CompletionNanos: 46_700_000_000, CPUNanos: 9 * second},
		{Workload: "OLTP", Group: "OLTP", Instance: 1, Engines: []interval.Engine{nativeEngine()}, VMs: 4,
			FromNanos: fixtureFrom * second, ToNanos: fixtureEnd * second, Due: 8_960_400, NotIssued: 1_210, CPUNanos: 312 * second},
	}
	f.fill(&list[0].Directions[interval.Write], 32_768, 1<<20, 5e6, false)
	f.fill(&list[1].Directions[interval.Read], 1_420_000, 8192, 0.8e6, true)
	f.fill(&list[1].Directions[interval.Write], 610_000, 32768, 1.4e6, true)
	list[1].Directions[interval.Write].Errors = map[string]uint64{"EIO": 9}
	for i := range list {
		for d := range list[i].Directions {
			list[i].Total.Add(&list[i].Directions[d])
		}
	}
	return list
}

func (f *fixture) fill(t *interval.Traffic, operations, block uint64, typical float64, open bool) {
	t.Operations, t.Bytes = operations, operations*block
	t.Service = &stat.Histogram{}
	if open {
		t.Response = &stat.Histogram{}
	}
	const samples = 10_000
	for range samples {
		v := typical / f.speed * math.Exp(0.5*f.random.NormFloat64())
		t.Service.RecordN(uint64(v), operations/samples)
		if open {
			t.Response.RecordN(uint64(v*1.3), operations/samples)
		}
	}
}

func fixtureFindings() []finding.Finding {
	return []finding.Finding{
		{Code: "expectation-failed", Severity: finding.Fail, Subject: "oltp_latency", FromNanos: fixtureOff * second, ToNanos: fixtureOn * second,
			Claim: "The 99th percentile of response time was 41.2 ms between 5:00 and 12:00; less than 20 ms was expected."},
		{Code: "load-errors", Severity: finding.Warning, Subject: "OLTP", FromNanos: fixtureOff * second, ToNanos: (fixtureOff + 3) * second,
			Claim:    "9 of 2,030,009 operations failed (EIO) between 5:00 and 5:03.",
			Evidence: []string{"OLTP-0003: 9 EIO"}, Advice: "Look at the log of the hypervisor of node-3 at that moment."},
		{Code: "not-issued", Severity: finding.Info, Subject: "OLTP", Claim: "OLTP dropped 1,210 of 8,960,400 due operations (0.01 %).",
			Caveats: []string{"Percentiles count them as slower than all that were issued; means and maxima leave them out."}},
	}
}

func nativeEngine() interval.Engine {
	return interval.Engine{Name: "native", Backends: []string{"io_uring"}}
}
