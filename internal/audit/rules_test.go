package audit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/audit"
	"github.com/braggdev/bragg/internal/audit/digest"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

const second = int64(1e9)

// made is a sound run of 60 s: one workload with a rate on two VMs. A test breaks one thing.
type made struct {
	in        rule.Input
	intervals []interval.Interval
}

const soundPlan = `{"groups": [{"name": "g", "ram_bytes": 1073741824, "count_final": 2}],
 "workloads": [{"name": "w", "vm_group": "g",
  "load": {"jobs": [{"pattern": "randread", "reads": true, "direct": true}], "extents": [{"device": "/dev/sdb", "offset": 0, "length": 4294967296}]},
  "prefill": {"command": "fio", "jobs": [{"pattern": "write"}], "extents": [{"device": "/dev/sdb", "offset": 0, "length": 4294967296, "writes": true}]}}]}`

func planOf(text string) *plan.Plan {
	p, err := plan.Read([]byte(text))
	if err != nil {
		panic(err)
	}
	return p
}

var (
	ring   = interval.Engine{Name: "native", Backends: []string{"io_uring"}}
	fallen = interval.Engine{Name: "native", Backends: []string{"libaio"}, Fallback: &interval.Fallback{From: "io_uring", Why: "off"}}
)

// noting is an engine with one note.
func noting(code interval.NoteCode, text string) interval.Engine {
	e := ring
	e.Notes = []interval.EngineNote{{Code: code, Text: text}}
	return e
}

func sound() *made {
	m := &made{in: rule.Input{Plan: planOf(soundPlan)}}
	m.in.Summary = result.Summary{Ended: result.EndedCompleted, Duration: 70 * second, Loads: []result.LoadSummary{
		{Workload: "w", Group: "g", Instance: 1, Prefill: true, Engines: []interval.Engine{ring}, VMs: 2, FromNanos: 0, ToNanos: 5 * second},
		{Workload: "w", Group: "g", Instance: 2, Engines: []interval.Engine{ring}, VMs: 2, FromNanos: 10 * second, ToNanos: 70 * second, Due: 60_000},
	}}
	random := rand.New(rand.NewPCG(1, 2))
	load := &m.in.Summary.Loads[1]
	for at := int64(10); at < 70; at++ {
		for vm := range 2 {
			iv := interval.Interval{Workload: "w", Group: "g", VM: fmt.Sprintf("vm-%d", vm+1), Instance: 2, Sequence: at - 10, StartNanos: at * second,
				LengthNanos: second, Final: at == 69, Due: 500, CPUNanos: second / 10}
			t := &iv.Directions[interval.Read]
			t.Operations, t.Bytes = 500, 500*8192
			t.Service, t.Response = &stat.Histogram{}, &stat.Histogram{}
			for range 500 {
				v := uint64(1e6 + 1e5*random.ExpFloat64())
				t.Service.Record(v)
				t.Response.Record(v + 1000)
			}
			load.Directions[interval.Read].Add(t)
			load.Total.Add(t)
			m.intervals = append(m.intervals, iv)
		}
	}
	return m
}

func (m *made) check() []finding.Finding {
	m.in.Digest = digest.New(m.in.Manifest.Engines)
	for i := range m.intervals {
		m.in.Digest.Add(&m.intervals[i])
	}
	return audit.Check(m.in)
}

func (m *made) load() *result.LoadSummary { return &m.in.Summary.Loads[1] }

func TestSoundRunHasNoFinding(t *testing.T) {
	if found := sound().check(); len(found) != 0 {
		t.Errorf("a sound run has findings %+v", found)
	}
}

// windowed gives the run a latency with windows of so many operations, and their percentiles where there are enough.
func windowed(m *made, counts ...uint64) {
	r := result.Evaluated{Name: "response", Title: "Response", Type: "latency"}
	for i, n := range counts {
		h := &stat.Histogram{}
		h.RecordN(1e6, n)
		s := analysis.OperationStats(h, 0, nil)
		s.Window, s.Series, s.Kind = fmt.Sprintf("window %d", i+1), "all", "service"
		r.Stats = append(r.Stats, s)
	}
	m.in.Summary.Results = append(m.in.Summary.Results, r)
}

// A window without a percentile, or with enough operations for it, has no finding.
func TestWindowsWithEnough(t *testing.T) {
	m := sound()
	windowed(m, 10_000, 99, 0, 1_000_000)
	if found := m.check(); len(found) != 0 {
		t.Errorf("got %+v", found)
	}
}

// closedLoop makes the load one of 60,000 operations of 1 ms without a rate, and a last one that takes long.
func closedLoop(m *made, last uint64) {
	h := &stat.Histogram{}
	h.RecordN(1e6, 59_999)
	h.Record(last)
	m.load().Engines = []interval.Engine{{Name: "native", Loop: interval.LoopClosed, Backends: []string{"io_uring"}}}
	m.load().Directions[interval.Read].Service, m.load().Directions[interval.Read].Response = h, nil
}

// One slow operation that takes no more than a tenth of a percent of the time moves no percentile, and a loop that is not closed
// counts its stalls itself.
func TestClosedLoopWithoutAStall(t *testing.T) {
	for _, last := range []uint64{1e6, 50e6} {
		m := sound()
		closedLoop(m, last)
		if found := m.check(); len(found) != 0 {
			t.Errorf("an operation of %d ns: %+v", last, found)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for name, latency := range map[string]func() uint64{
		"of a cache and a disk": func() uint64 {
			if random.IntN(10) == 0 {
				return 5e6
			}
			return 5e3
		},
		"of a cache that rarely misses": func() uint64 {
			if random.IntN(200) == 0 {
				return 5e6
			}
			return 5e3
		},
		"exponential": func() uint64 { return uint64(1e6 * random.ExpFloat64()) },
		"lognormal":   func() uint64 { return uint64(1e6 * math.Exp(random.NormFloat64())) },
	} {
		m, h := sound(), &stat.Histogram{}
		for range 60_000 {
			h.Record(latency())
		}
		closedLoop(m, 1e6)
		m.load().Directions[interval.Read].Service = h
		if found := m.check(); len(found) != 0 {
			t.Errorf("latencies that are %s: %+v", name, found)
		}
	}
	m := sound()
	closedLoop(m, 1900e6)
	m.load().Engines[0].Loop = interval.LoopPaced
	if found := m.check(); len(found) != 1 || found[0].Code != "service-time-only" {
		t.Errorf("a paced loop: %+v", found)
	}
}

// A start within the noticed skew gives no finding.
func TestEvenStartHasNoFinding(t *testing.T) {
	m := sound()
	m.in.Events = []interval.Event{{Kind: interval.EventStarts, Workload: "w", Instance: 2, SpanNanos: 3e6}}
	if found := m.check(); len(found) != 0 {
		t.Errorf("got %+v", found)
	}
}

func TestRules(t *testing.T) {
	cases := []struct {
		name     string
		change   func(*made)
		code     string
		severity finding.Severity
		claim    string
	}{
		{"interrupted", func(m *made) { m.in.Summary.Ended = result.EndedInterrupted }, "run-incomplete", finding.Undecided, "was interrupted after 1 m 10 s"},
		{"a step failed", func(m *made) {
			m.in.Events = []interval.Event{{AtNanos: 20 * second, Kind: interval.EventStepEnded, Phase: "run", Step: "nodes.PowerOff", Error: "no answer"}}
		}, "run-incomplete", finding.Undecided, "Step nodes.PowerOff of the run phase failed at 0:20: no answer."},
		{"a workload failed", func(m *made) { m.load().Error = "EBADF" }, "run-incomplete", finding.Undecided, "w ended with an error: EBADF"},
		{"a VM that moved", func(m *made) {
			m.in.Plan = planOf(strings.Replace(soundPlan, "{", `{"target": {"nodes": [{"id": "1", "name": "host-1"}, {"id": "2", "name": "host-2"}]},`, 1))
			m.in.Events = []interval.Event{
				{Kind: interval.EventPlaced, Group: "g", Subject: "vm-1", Node: "1"},
				{AtNanos: 15 * second, Kind: interval.EventPlaced, Group: "g", Subject: "vm-2", Node: "1"}, // by a step
				{AtNanos: 50 * second, Kind: interval.EventPlaced, Group: "g", Subject: "vm-1", Node: "2", From: "1", SpanNanos: 30 * second, Unasked: true},
			}
		}, "vm-moved", finding.Warning, "vm-1 moved from host-1 to host-2 between 0:20 and 0:50 without a step of the run. The placement of w differs from the scenario"},
		{"a VM that the platform started elsewhere after a cut by the run", func(m *made) {
			m.in.Events = []interval.Event{
				{Kind: interval.EventPlaced, Group: "g", Subject: "vm-1", Node: "a"},
				{AtNanos: 50 * second, Kind: interval.EventPlaced, Group: "g", Subject: "vm-1", Node: "b", From: "a", SpanNanos: 30 * second, Unasked: true, AfterCut: true},
			}
		}, "vm-moved", finding.Info, "vm-1 moved from a to b between 0:20 and 0:50 after the run took one of the two nodes out of use. From then on it ran w there."},
		{"one that it started when all was over", func(m *made) {
			m.in.Events = []interval.Event{{AtNanos: 80 * second, Kind: interval.EventPlaced, Group: "g", Subject: "vm-1", Node: "b", From: "a", SpanNanos: second, Unasked: true, AfterCut: true}}
		}, "vm-moved", finding.Info, "after the run took one of the two nodes out of use. Its group had no load at that time."},
		{"a VM that moved when all was over", func(m *made) {
			m.in.Events = []interval.Event{{AtNanos: 80 * second, Kind: interval.EventPlaced, Group: "g", Subject: "vm-1", Node: "b", From: "a", SpanNanos: second, Unasked: true}}
		}, "vm-moved", finding.Warning, "vm-1 moved from a to b between 1:19 and 1:20 without a step of the run. Its group had no load at that time."},
		{"a VM whose move the platform reports", func(m *made) {
			m.in.Events = []interval.Event{
				{AtNanos: 49 * second, Kind: interval.EventPlatform, Platform: interval.PlatformMoved, Subject: "vm-1", Node: "b", Message: "DRS migrated vm-1 from a to b"},
				{AtNanos: 50 * second, Kind: interval.EventPlaced, Group: "g", Subject: "vm-1", Node: "b", From: "a", SpanNanos: 30 * second, Unasked: true},
			}
		}, "vm-moved", finding.Warning, "differs from the scenario from then on. The platform reports: DRS migrated vm-1 from a to b."},
		{"a node that the run itself powered off", func(m *made) {
			m.in.Events = []interval.Event{
				{AtNanos: 51 * second, Kind: interval.EventAnnotation, Message: "recorded before what began earlier"},
				{AtNanos: 40 * second, Kind: interval.EventOperationStarted, Operation: interval.OperationNodeOff, Subject: "host-2"},
				{AtNanos: 50 * second, Kind: interval.EventPlatform, Platform: interval.PlatformNodeDown, Subject: "host-2", Message: "Host host-2 is not responding."},
			}
		}, "platform-event", finding.Info, "during w: Host host-2 is not responding."},
		{"a ramp of the job file", func(m *made) {
			leavesOut(result.WarmUp{FromNanos: 10 * second, ToNanos: 18 * second, Steady: true, Ramp: true})(m)
		}, "warm-up-left-out", finding.Info, "w: its first 8 s are left out of Rate: its job file counts no operations in that time (ramp_time)."},
		{"rehearsal", func(m *made) { m.in.Manifest.Rehearsal = &result.Rehearsal{Asked: 60e9, TimeFactor: 0.025} }, "rehearsal", finding.Warning, "rehearsal of 1 m (time factor 0.025)"},
		{"simulated target", func(m *made) { m.in.Manifest.Target = result.TargetInfo{Name: "fake:4", Simulated: true} }, "simulated", finding.Warning, `"fake:4" is simulated`},
		{"simulated step", func(m *made) {
			m.in.Manifest.Target.Name = "local"
			m.in.Events = []interval.Event{{Kind: interval.EventStepStarted, Step: "vm_group.MigrateGroup", Simulate: true}}
		}, "simulated", finding.Warning, `1 step type was simulated on the target "local"`},
		{"a stall", func(m *made) { m.intervals[40].StalledNanos = second / 2 }, "generator-stalled", finding.Warning, "stalled for 500 ms (0.42 % of its runtime), longest 500 ms at 0:30 on vm-1"},
		{"many stalls", func(m *made) {
			for i := range m.intervals {
				m.intervals[i].StalledNanos = second / 5
			}
		}, "generator-stalled", finding.Undecided, "20 % of its runtime"},
		{"a busy generator", func(m *made) {
			for i := range m.intervals {
				m.intervals[i].CPUNanos = second * 98 / 100
			}
		}, "generator-cpu-bound", finding.Warning, "0.98 CPU cores on vm-1"},
		{"a saturated thread", func(m *made) {
			for i := range m.intervals {
				m.intervals[i].CPUNanos, m.intervals[i].BusiestNanos = 2*second, second/2
				if i%4 == 0 {
					m.intervals[i].BusiestNanos = second * 97 / 100
				}
			}
		}, "generator-cpu-bound", finding.Warning, "was CPU-bound in 50 % of its intervals on vm-1"},
		{"a thread that waits for a CPU", func(m *made) {
			for i := range m.intervals {
				if i%10 == 4 {
					m.intervals[i].WaitedNanos = second / 10
				}
			}
		}, "generator-starved", finding.Warning, "was CPU-starved in 10 % of its intervals, first at 0:12 on vm-1"},
		{"a hypervisor that steals", func(m *made) {
			for i := range m.intervals {
				m.intervals[i].StolenNanos = second / 3
			}
		}, "generator-starved", finding.Undecided, "was CPU-starved in 100 % of its intervals"},
		{"a control group that throttles", func(m *made) {
			for i := range m.intervals {
				m.intervals[i].ThrottledNanos = second / 5
			}
		}, "generator-starved", finding.Warning, "was CPU-starved in 100 % of its intervals"},
		{"few not issued", func(m *made) { m.load().NotIssued = 5 }, "not-issued", finding.Info, "w dropped 5 of 60,000 due operations (less than 0.01 %)."},
		{"many not issued", func(m *made) { m.load().NotIssued = 6000 }, "not-issued", finding.Warning, "due operations (10 %)"},
		{"a backlog", func(m *made) { m.intervals[len(m.intervals)-1].Backlog = 2500 }, "backlog-at-end", finding.Warning, "a backlog of 2,500 operations (2.5 s of work"},
		{"errors", func(m *made) { m.load().Total.Errors = map[string]uint64{"EIO": 9} }, "load-errors", finding.Warning, "9 of 60,009 operations of w failed (0.015 %): 9 EIO."},
		{"lost intervals", func(m *made) { m.intervals = append(m.intervals[:20], m.intervals[24:]...) }, "intervals-missing", finding.Warning, "4 of 120 intervals of w are missing (3.33 %)."},
		{"many lost intervals", func(m *made) { m.intervals = append(m.intervals[:20], m.intervals[40:]...) }, "intervals-missing", finding.Undecided, "20 of 120"},
		{"no last interval", func(m *made) { m.intervals = m.intervals[:len(m.intervals)-1] }, "intervals-missing", finding.Warning, "w on 1 VM ended without a final interval"},
		{"a clock that was set", func(m *made) {
			m.in.Events = []interval.Event{
				{AtNanos: 20 * second, Kind: interval.EventClockJump, Subject: "vm-1", SpanNanos: -second / 5, Message: "a"},
				{AtNanos: 40 * second, Kind: interval.EventClockJump, Subject: "vm-1", SpanNanos: 2 * second, Message: "b"},
			}
		}, "clock-jumped", finding.Warning, "The clock of vm-1 jumped 2 times, by up to 2 s at 0:40."},
		{"a ragged start", func(m *made) {
			m.in.Events = []interval.Event{
				{AtNanos: 10 * second, Kind: interval.EventStarts, Workload: "w", Instance: 2, Subject: "vm-2", SpanNanos: second * 7 / 10},
			}
		}, "start-skew", finding.Warning, "Start skew of w: 700 ms; vm-2 started last."},
		{"a controller that was stopped", func(m *made) {
			m.in.Events = []interval.Event{{AtNanos: 40 * second, Kind: interval.EventPaused, Subject: "controller", SpanNanos: 30 * second}}
		}, "controller-paused", finding.Warning, "The controller was paused for 30 s, from 0:10 to 0:40."},
		{"a neighbor that left", func(m *made) {
			m.in.Events = []interval.Event{
				{AtNanos: 10 * second, Kind: interval.EventShared, Subject: "run-2", Message: "a"},
				{AtNanos: 40 * second, Kind: interval.EventAlone, Subject: "run-2", Message: "b"},
			}
		}, "machine-shared", finding.Warning, `Run "run-2" used the same machine from 0:10 to 0:40.`},
		{"a neighbor that stayed", func(m *made) {
			m.in.Events = []interval.Event{{AtNanos: 10 * second, Kind: interval.EventShared, Subject: "run-2", Message: "a"}}
		}, "machine-shared", finding.Warning, `Run "run-2" used the same machine from 0:10 until this run ended.`},
		{"a VM that crashed", func(m *made) {
			m.in.Events = []interval.Event{{AtNanos: 30 * second, Kind: interval.EventVMStopped, Subject: "vm-2", Error: "its system panicked"}}
		}, "vm-stopped", finding.Undecided, "vm-2 stopped unexpectedly at 0:30: its system panicked."},
		{"a VM that stopped without an event", func(m *made) {
			m.in.Events = []interval.Event{{AtNanos: 30 * second, UncertainNanos: 12 * second, Kind: interval.EventVMStopped, Subject: "vm-2", Error: "its system panicked"}}
		}, "vm-stopped", finding.Undecided, "vm-2 stopped unexpectedly between 0:18 and 0:30: its system panicked."},
		{"a power cut by the run", func(m *made) {
			m.intervals = m.intervals[:len(m.intervals)-1]
			m.in.Events = []interval.Event{{AtNanos: 69*second + 5e8, Kind: interval.EventAnnotation, Workload: "w", Instance: 2, Subject: "vm-2", CutByRun: true}}
		}, "power-cut-unrecorded", finding.Info, "I/O of w in the last 500 ms or less before the power cut was not recorded (1 VM)."},
		{"a copied series", func(m *made) {
			for i := 0; i < len(m.intervals); i += 2 {
				m.intervals[i+1].Directions = m.intervals[i].Directions
			}
		}, "identical-samples", finding.Undecided, "w on vm-1 and of w on vm-2 are identical in all 60 busy intervals"},
		{"few samples", func(m *made) { m.load().Directions[interval.Read].Operations = 4210 }, "few-samples", finding.Info, "too few read operations (4,210) for a stable p99.9: 4 lie beyond it."},
		{"very few samples", func(m *made) { m.load().Directions[interval.Read].Operations = 99 }, "few-samples", finding.Info, "for a stable p99 (and p99.9): less than one lies beyond it."},
		{"few in one window", func(m *made) { windowed(m, 20_000, 4210) }, "few-samples", finding.Info,
			`Response has too few operations for a stable p99.9 in window "window 2" (4,210).`},
		{"few in two windows", func(m *made) { windowed(m, 9_999, 20_000, 420) }, "few-samples", finding.Info,
			`Response has too few operations for stable high percentiles in 2 windows, fewest in "window 3": 420 for p99.`},
		{"short", func(m *made) { m.load().ToNanos = 14 * second }, "short-workload", finding.Warning, "w ran for only 4 s."},
		{"long waits", func(m *made) {
			h := &stat.Histogram{}
			h.RecordN(50e6, 60_000)
			m.load().Directions[interval.Read].Response = h
		}, "response-beyond-service", finding.Info, "50 ms response time"},
		{"a closed loop that hung", func(m *made) { closedLoop(m, 500e6) }, "coordinated-omission", finding.Warning,
			"w is a closed loop that hung: p99.9 of read operations is 1 ms as measured, and would be 3"},
		{"nothing was written", func(m *made) { m.in.Summary.Loads[0].Workload = "other" }, "cache-suspected", finding.Warning, "w reads 4 GiB of unwritten data per VM"},
		{"holes on the disk", func(m *made) {
			m.load().Engines = []interval.Engine{ring, noting(interval.NoteUnwritten, "a part of what is read of /dev/sdb was never written")}
		}, "cache-suspected", finding.Warning, "w reads unwritten data: a part of what is read of /dev/sdb was never written."},
		{"kept in the page cache", func(m *made) {
			m.load().Engines = []interval.Engine{ring, noting(interval.NoteCached, "reads may come from the page cache (invalidate=0)")}
		}, "cache-suspected", finding.Warning, "w keeps its data in the page cache: reads may come from the page cache (invalidate=0)."},
		{"buffered", func(m *made) {
			m.in.Plan = planOf(strings.NewReplacer(`, "direct": true`, "", "4294967296", "536870912").Replace(soundPlan))
		}, "cache-suspected", finding.Warning, "buffered I/O on 512 MiB in VMs with 1 GiB"},
		{"a drift", func(m *made) {
			for i := range m.intervals {
				m.intervals[i].Directions[interval.Read].Operations = uint64(400 + i)
			}
		}, "not-steady", finding.Warning, "w was not steady from 0:10 to 1:10: its IOPS rose by 26 % over 1 m"},
		{"scatter", func(m *made) {
			for i := range m.intervals {
				m.intervals[i].Directions[interval.Read].Operations = uint64(100 + 800*(i/2%2))
			}
		}, "not-steady", finding.Warning, "scatter by 80 %"},
		{"a wait for a steady load in vain", event(interval.Event{AtNanos: 40 * second, Kind: interval.EventSteady, Workload: "w", SpanNanos: 30 * second,
			Message: "w did not become steady within 30 s: too short to say", Error: "too short to say"}), "not-settled", finding.Warning,
			"w did not become steady within 30 s: too short to say. Its thresholds are undecided."},
		{"libaio", func(m *made) { m.load().Engines = []interval.Engine{fallen} }, "engine-fallback", finding.Info,
			`w ran with "native libaio (io_uring refused: off)"`},
		{"psync on some VMs", func(m *made) { m.load().Engines = []interval.Engine{ring, fallen} },
			"engine-fallback", finding.Info, "io_uring was not used"},
		{"no direct access", func(m *made) {
			m.load().Engines = []interval.Engine{noting(interval.NoteBuffered, "the file system of /d has no direct access")}
		},
			"engine-fallback", finding.Warning, "the page cache"},
	}
	covered := map[string]bool{}
	for _, c := range cases {
		m := sound()
		c.change(m)
		found := m.check()
		covered[c.code] = true
		if len(found) == 0 {
			t.Errorf("%s: no finding", c.name)
			continue
		}
		if f := found[0]; f.Code != c.code || f.Severity != c.severity || !strings.Contains(f.Claim, c.claim) {
			t.Errorf("%s: %s %s: %s; want %s %s: … %s", c.name, f.Severity, f.Code, f.Claim, c.severity, c.code, c.claim)
		}
		for _, f := range found[1:] {
			if f.Code != c.code {
				t.Errorf("%s: a further finding %s: %s", c.name, f.Code, f.Claim)
			}
		}
	}
	for _, r := range audit.Rules() {
		if _, has := contracts[r.Code]; !covered[r.Code] && !has {
			t.Errorf("no test breaks what rule %s looks for", r.Code)
		}
	}
}

// TestEveryNoteHasItsFinding: however many VMs differ, and however their texts read, none hides another's.
func TestEveryNoteHasItsFinding(t *testing.T) {
	m := sound()
	both := noting(interval.NoteUnwritten, "all of /dev/sdb; cached: no")
	both.Notes = append(both.Notes, interval.EngineNote{Code: interval.NoteUnwritten, Text: "most | of /dev/sdc"})
	m.load().Engines = []interval.Engine{ring, fallen, both, noting("of-its-own", "shown alone"),
		noting(interval.NoteCached, "invalidate=0"), noting(interval.NoteCached, "pre_read=1"), noting(interval.NoteBuffered, "/d")}
	want := []string{"libaio (io_uring refused: off)", "all of /dev/sdb; cached: no", "keeps its data in the page cache: invalidate=0",
		"keeps its data in the page cache: pre_read=1", "may be those of the page cache"}
	found := m.check()
	if len(found) != len(want) {
		t.Errorf("%d findings: %+v", len(found), found)
	}
	for _, w := range want {
		if !slices.ContainsFunc(found, func(f finding.Finding) bool { return strings.Contains(f.Claim, w) }) {
			t.Errorf("no finding says %q: %+v", w, found)
		}
	}
	if !slices.ContainsFunc(found, func(f finding.Finding) bool { return slices.Contains(f.Evidence, "most | of /dev/sdc") }) {
		t.Errorf("the second device is missing: %+v", found)
	}
}

// TestWorstFirst: findings are ordered by severity.
func TestWorstFirst(t *testing.T) {
	m := sound()
	m.load().NotIssued = 5
	m.in.Summary.Ended = result.EndedAborted
	m.load().Total.Errors = map[string]uint64{"EIO": 9}
	var got []finding.Severity
	for _, f := range m.check() {
		got = append(got, f.Severity)
	}
	if fmt.Sprint(got) != "[undecided warning info]" {
		t.Errorf("severities are %v", got)
	}
}

// TestWidestFirst: of two warnings, the one that affects more of the numbers is first, whatever the order of rules.
func TestWidestFirst(t *testing.T) {
	m := sound()
	for i := range m.intervals {
		m.intervals[i].WaitedNanos = m.intervals[i].LengthNanos / 10
	}
	m.intervals[0].StalledNanos = 200e6
	var got []string
	for _, f := range m.check() {
		if f.Severity == finding.Warning {
			got = append(got, f.Code)
		}
	}
	if fmt.Sprint(got) != "[generator-starved generator-stalled]" {
		t.Errorf("warnings are %v", got)
	}
}

// TestLatencyUnderARate: IOPS stay at the rate while response time rises, or is bad every other half a minute.
func TestLatencyUnderARate(t *testing.T) {
	for name, c := range map[string]struct {
		nanos func(second int64) uint64
		claim string
	}{
		"rises":      {func(s int64) uint64 { return uint64(1e6 + 3e4*s) }, "its median response time rose by"},
		"alternates": {func(s int64) uint64 { return 1e6 + 4e6*uint64(s/10%2) }, "the levels of its median response time differ by"},
	} {
		m := sound()
		for i := range m.intervals {
			t := &m.intervals[i].Directions[interval.Read]
			h := &stat.Histogram{}
			h.RecordN(c.nanos(m.intervals[i].StartNanos/second), 500)
			t.Response = h
		}
		found := m.check()
		if len(found) != 1 || found[0].Code != "not-steady" || !strings.Contains(found[0].Claim, c.claim) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestWindowsAreJudgedApart: a load that is steady before and after a step is steady.
func TestWindowsAreJudgedApart(t *testing.T) {
	m := sound()
	for i := range m.intervals {
		if m.intervals[i].StartNanos >= 40*second {
			m.intervals[i].Directions[interval.Read].Operations = 100
		}
	}
	if found := m.check(); len(found) != 1 || found[0].Code != "not-steady" {
		t.Fatalf("a step in the middle of one window: %v", found)
	}
	m.in.Summary.Windows = []result.Window{{Name: "before nodes.PowerOff", FromNanos: 10 * second, ToNanos: 40 * second},
		{Name: "after nodes.PowerOff", FromNanos: 40 * second, ToNanos: 70 * second}}
	if found := m.check(); len(found) != 0 {
		t.Errorf("steady in both windows: %v", found)
	}
}

// TestEventIsNoWarmUp: a load that an event changed near its start had no warm-up.
func TestEventIsNoWarmUp(t *testing.T) {
	m := sound()
	begins(300)(m)
	m.in.Summary.Windows = []result.Window{{Name: "before nodes.PowerOff", FromNanos: 10 * second, ToNanos: 16 * second},
		{Name: "after nodes.PowerOff", FromNanos: 16 * second, ToNanos: 70 * second}}
	if found := m.check(); slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Code == "warm-up-included" }) {
		t.Errorf("found %+v", found)
	}
}

// TestPowerCutByTheRunIsNoLoss: a VM that the run powered off under its load leaves no last interval, and that is
// expected; the same end of another VM, or of another start, is not.
func TestPowerCutByTheRunIsNoLoss(t *testing.T) {
	m := sound()
	m.intervals = m.intervals[:len(m.intervals)-1] // the last one of vm-2
	cut := interval.Event{AtNanos: 69*second + 930e6, Kind: interval.EventAnnotation, Workload: "w", Instance: 2, Subject: "vm-2", CutByRun: true}
	m.in.Events = []interval.Event{cut}
	want := "I/O of w in the last 930 ms or less before the power cut was not recorded (1 VM)."
	if found := m.check(); len(found) != 1 || found[0].Code != "power-cut-unrecorded" || found[0].Severity != finding.Info || found[0].Claim != want {
		t.Errorf("cut by the run: %+v", found)
	}
	other, start, unmarked := cut, cut, cut
	other.Subject, start.Instance, unmarked.CutByRun = "vm-1", 1, false
	for _, e := range []interval.Event{other, start, unmarked} {
		m.in.Events = []interval.Event{e}
		if found := m.check(); len(found) != 1 || found[0].Code != "intervals-missing" {
			t.Errorf("event %+v: %+v", e, found)
		}
	}
}

// The CPU time of a load that computes is its work, and not an effort that limits it.
func TestLoadsThatComputeAreNotCPUBound(t *testing.T) {
	for _, computes := range []bool{false, true} {
		m := sound()
		each(func(iv *interval.Interval) { iv.CPUNanos = second })(m)
		m.in.Plan.Workloads[0].Load.Computes = computes
		if found := m.found("generator-cpu-bound"); len(found) == 0 != computes {
			t.Errorf("computes %t: %+v", computes, found)
		}
	}
}

// A program has no jobs with a size: it needed a part of its time to connect, or ended.
func TestProgramsDoNotTransferASize(t *testing.T) {
	m := sound()
	engine(interval.Engine{Name: "pgbench", Operations: []string{"tpcb-like"}})(m)
	planned(2 * time.Minute)(m)
	want := "w was measured for 1 m of 2 m: it started and connected in the rest, or ended early."
	if found := m.found("ended-early"); len(found) != 1 || found[0].Claim != want || strings.Contains(found[0].Advice, "time_based") {
		t.Errorf("%+v", found)
	}
}
