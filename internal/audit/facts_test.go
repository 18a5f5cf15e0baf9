package audit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
)

// Numbers in this file were published, or measured with the programs that they name. A test has what a rule must find in them, and the
// same with numbers that are right.

// found are the findings of a rule.
func (m *made) found(code string) (list []finding.Finding) {
	for _, f := range m.check() {
		if f.Code == code {
			list = append(list, f)
		}
	}
	return list
}

// memoryTest is one load of sysbench's memory test in a VM.
type memoryTest struct {
	block   int64
	threads int
	rate    uint64 // events per second
}

// accessing are loads of sysbench's memory test of a minute each in VMs with that many CPUs.
func accessing(vcpus int, tests ...memoryTest) *made {
	m := sound()
	m.in.Plan.Groups[0].VCPUs = vcpus
	m.in.Plan.Workloads, m.in.Summary.Loads, m.intervals = nil, nil, nil
	for i, c := range tests {
		name := string(rune('A' + i))
		e := interval.Engine{Name: "sysbench", Loop: interval.LoopClosed, Operations: []string{"memory read"}}
		m.in.Plan.Workloads = append(m.in.Plan.Workloads, plan.Workload{Name: name, Group: "g", Load: &load.Plan{Engine: e, Jobs: []load.JobPlan{
			{Name: "memory", Pattern: "memory read", Memory: true, QueueDepth: c.threads, DepthAsked: c.threads, Clones: 1, BlockMin: c.block, BlockMax: c.block}}}})
		l := result.LoadSummary{Workload: name, Group: "g", Instance: 1, VMs: 2, Engines: []interval.Engine{e}, FromNanos: int64(100*i) * second, ToNanos: int64(100*i+60) * second}
		l.Total.Operations = c.rate * 60 * 2
		l.Total.Bytes = l.Total.Operations * uint64(c.block)
		m.in.Summary.Loads = append(m.in.Summary.Loads, l)
	}
	return m
}

// TestElidedMemory: memory accesses that a compiler removed cost the same for all block sizes and are faster than a core, and events that
// wait for a lock are as many with all threads. Those of 1 KiB to 10 MiB are of a published test, in which each event took 2.37 µs whatever
// its size, up to 4,164,352 MiB/s; the sound ones are of sysbench 1.0.20.
func TestElidedMemory(t *testing.T) {
	published := []memoryTest{{1 << 10, 1, 421735}, {100 << 10, 1, 422219}, {1 << 20, 1, 421914}, {10 << 20, 1, 416435}}
	const beyond, same = "more than a core executes", "reach the same rate"
	for name, c := range map[string]struct {
		vcpus int
		tests []memoryTest
		want  []string
	}{
		"published": {8, published, []string{"C accessed 412 GiB/s of memory per VM with 1 thread: " + beyond, "D accessed 3.97 TiB/s of memory per VM with 1 thread: " + beyond,
			"A and D reach the same rate (421,735 and 416,435 operations/s per VM) with blocks of 1 KiB and 10 MiB: work does not grow with block size."}},
		// 8 cores execute 1,152 GB/s, and more threads no more.
		"many threads": {8, []memoryTest{{10 << 20, 64, 416435}}, []string{"D accessed 3.97 TiB/s of memory per VM with 8 threads: " + beyond}},
		"a lock": {16, []memoryTest{{1 << 10, 1, 421735}, {1 << 10, 16, 422219}}, []string{"A and B " + same +
			" (421,735 and 422,219 operations/s per VM) with 1 thread and 16 threads: a lock or a clock is measured, not memory."}},
		"more threads than CPUs": {1, []memoryTest{{1 << 10, 1, 421735}, {1 << 10, 16, 422219}}, nil},
		"writes of 1.0.20":       {8, []memoryTest{{1 << 10, 1, 6_334_115}, {1 << 20, 1, 18_372}}, nil},
		"reads of 1.0.20":        {8, []memoryTest{{1 << 10, 1, 7_603_511}, {1 << 20, 1, 52_098}}, nil},
		"saturated memory":       {64, []memoryTest{{1 << 20, 8, 52_098}, {1 << 20, 64, 52_500}}, nil},
	} {
		var claims []string
		for _, f := range accessing(c.vcpus, c.tests...).found("elided-work") {
			claims = append(claims, f.Claim)
			if strings.Contains(f.Claim, "10 MiB") && len(f.Evidence) != 2 {
				t.Errorf("%s: evidence %q, want both loads between the first and the last", name, f.Evidence)
			}
		}
		for _, want := range c.want {
			if want = strings.Replace(want, "D accessed", string(rune('A'+len(c.tests)-1))+" accessed", 1); !strings.Contains(strings.Join(claims, "\n"), want) {
				t.Errorf("%s: %q, want %q", name, claims, want)
			}
		}
		if len(claims) != len(c.want) {
			t.Errorf("%s: %q", name, claims)
		}
	}
}

// TestOneNodeIsTheLimit: a server put the connections of all clients on one NUMA node, so that the machine used 50 to 60 % of its CPU time
// with this node at 100 %.
func TestOneNodeIsTheLimit(t *testing.T) {
	for name, c := range map[string]struct {
		shares []float64
		found  bool
	}{
		"two nodes":      {[]float64{1, 0.1}, true},
		"four nodes":     {[]float64{0.4, 1, 0.4, 0.4}, true},
		"an even load":   {[]float64{0.55, 0.55}, false},
		"both are full":  {[]float64{1, 0.95}, false},
		"a single node":  {[]float64{1}, false},
		"nearly no load": {[]float64{0.19, 0}, false},
	} {
		m := sound()
		busy("local", c.shares...)(m)
		found := m.found("numa-imbalance")
		if (len(found) > 0) != c.found {
			t.Errorf("%s: %+v", name, found)
		}
		if c.found && (len(found[0].Evidence) != 1 || !strings.Contains(found[0].Evidence[0], "the machine used 55 % of its CPU time") || !strings.Contains(found[0].Claim, "100 % on node")) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestMemoryDatabase: a server that keeps its data in memory has only a log on its disk, whose size says nothing about caches.
func TestMemoryDatabase(t *testing.T) {
	m := sound()
	m.workingSet(120 << 20)
	if len(m.found("tiny-working-set")) == 0 {
		t.Error("nothing was found in a load on a disk")
	}
	m = sound()
	m.workingSet(120 << 20)
	m.in.Plan.Workloads[0].Load.InMemory = true
	if found := m.found("tiny-working-set"); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// TestCheckpointIntervals: a load of a database lasts for two of its checkpoint intervals at least. PostgreSQL has 5 minutes unless it is set
// differently, and loads of one to five minutes are common: pgbench has examples of 60 s, and HammerDB a default of 5 minutes.
func TestCheckpointIntervals(t *testing.T) {
	const every = 300 * second
	minutes := func(n int64) func(*made) {
		return func(m *made) { m.load().ToNanos = m.load().FromNanos + n*60*second }
	}
	warmUp := func(m *made) { leavesOut(result.WarmUp{FromNanos: 10 * second, ToNanos: 70 * second, Steady: true})(m) }
	both := func(list ...func(*made)) func(*made) {
		return func(m *made) {
			for _, change := range list {
				change(m)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*made)
		claim  string
	}{
		"a minute":                 {minutes(1), "w was measured for 1 m, less than two checkpoint intervals of its database (5 m each): 0 checkpoints began."},
		"five minutes":             {minutes(5), "measured for 5 m, less"},
		"ten minutes":              {minutes(10), ""},
		"ten, one of them warm-up": {both(minutes(10), warmUp), "measured for 9 m, less"},
		"eleven, one of warm-up":   {both(minutes(11), warmUp), ""},
		"only reads":               {func(m *made) { m.job().Writes = false }, ""},
		"forced by the WAL":        {database(every, 2), ""},
		"an endpoint":              {func(m *made) { m.in.Manifest.Engines, m.load().Engines[0].Gauges = nil, nil }, "less than two checkpoint intervals of its database (5 m each)."},
		"MariaDB":                  {func(m *made) { m.load().Engines[0].CheckpointNanos = 0 }, ""},
		"a rehearsal":              {func(m *made) { m.in.Manifest.Rehearsal = &result.Rehearsal{} }, ""},
		"a simulated database":     {func(m *made) { m.in.Manifest.Target.Simulated = true }, ""},
	} {
		m := sound()
		database(every, 0)(m)
		c.change(m)
		found := m.found("few-checkpoints")
		if (len(found) > 0) != (c.claim != "") || len(found) > 0 && (!strings.Contains(found[0].Claim, c.claim) || found[0].Severity != finding.Warning) {
			t.Errorf("%s: %+v, want %q", name, found, c.claim)
		}
	}
}

// TestUnwrittenDataIsReportedOnce: the plan and the disk say the same of a load without a prefill.
func TestUnwrittenDataIsReportedOnce(t *testing.T) {
	m := sound()
	m.in.Summary.Loads[0].Workload = "other"
	m.load().Engines = []interval.Engine{ring, noting(interval.NoteUnwritten, "all of what is read of /dev/sdb was never written")}
	found := m.found("cache-suspected")
	if len(found) != 1 || !strings.HasPrefix(found[0].Claim, "w reads 4 GiB of unwritten data") ||
		!slices.Contains(found[0].Evidence, "all of what is read of /dev/sdb was never written") {
		t.Errorf("%+v", found)
	}
}
