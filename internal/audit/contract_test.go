package audit_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/audit"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/testreq"
)

// contract is what every rule has beside its code: a run that it finds, with the severity and a part of the claim, and one next to it,
// within the threshold, that it does not.
type contract struct {
	fires    func(*made)
	severity finding.Severity
	claim    string
	silent   func(*made)
}

// job is the job of the sound run's load.
func (m *made) job() *load.JobPlan { return &m.in.Plan.Workloads[0].Load.Jobs[0] }

// writes makes all operations of the load random writes.
func (m *made) writes() {
	m.in.Plan.Workloads[0].Load.Extents[0].Writes = true
	j := m.job()
	j.Pattern, j.Writes = "randwrite", true
	d := &m.load().Directions
	d[interval.Write], d[interval.Read] = d[interval.Read], interval.Traffic{}
}

// checkpoints makes the load one on databases, one in each VM, which have a checkpoint that begins at 40 s and writes until 42 s. The
// rate of a second is that share of 500/s; a share of 0 is a whole one.
func checkpoints(shares func(at int64) float64) func(*made) {
	return func(m *made) {
		e := interval.Engine{Name: "pgbench", Loop: interval.LoopClosed, Operations: []string{"tpcb-like"}, Gauges: []interval.Gauge{
			{Name: "writes", Meaning: interval.GaugeCheckpointWrites}, {Name: "counted", Meaning: interval.GaugeCheckpoints}}}
		m.load().Engines = []interval.Engine{e}
		m.in.Manifest.Engines = map[string]interval.Engine{"w": e}
		for i := range m.intervals {
			iv := &m.intervals[i]
			at := iv.StartNanos / second
			iv.Gauges = interval.GaugeValues{0, 0}
			if at >= 40 {
				iv.Gauges[1] = 1
			}
			if at >= 40 && at <= 42 {
				iv.Gauges[0] = 20
			}
			if share := shares(at); share > 0 {
				iv.Directions[0].Operations = uint64(share * 500)
			}
		}
	}
}

// database makes the load one that writes to databases, which start a checkpoint after so much time and have counted some.
func database(every int64, counted int) func(*made) {
	return func(m *made) {
		checkpoints(func(int64) float64 { return 0 })(m)
		m.load().Engines[0].CheckpointNanos = every
		m.job().Writes, m.job().Flushes = true, true
		m.in.Plan.Workloads[0].Load.Extents[0].Writes = true
		for i := range m.intervals {
			m.intervals[i].Gauges[1] = min(m.intervals[i].Gauges[1]*float64(counted), float64(counted))
		}
	}
}

// workingSet sets the bytes that the load uses.
func (m *made) workingSet(bytes int64) { m.in.Plan.Workloads[0].Load.Extents[0].Length = bytes }

// beside adds a second workload of the group, from and to in seconds.
func (m *made) beside(device string, from, to int64) *result.LoadSummary {
	w := m.in.Plan.Workloads[0]
	copied := *w.Load
	copied.Extents = []extent.Extent{{Device: device, Length: 4 << 30}}
	m.in.Plan.Workloads[0].Prefill.Extents = append(m.in.Plan.Workloads[0].Prefill.Extents, extent.Extent{Device: device, Length: 4 << 30, Writes: true})
	m.in.Plan.Workloads = append(m.in.Plan.Workloads, plan.Workload{Name: "other", Group: "g", Load: &copied})
	m.in.Summary.Loads = append(m.in.Summary.Loads, result.LoadSummary{Workload: "other", Group: "g", Instance: 1, VMs: 2,
		Engines: []interval.Engine{ring}, FromNanos: from * second, ToNanos: to * second})
	return &m.in.Summary.Loads[len(m.in.Summary.Loads)-1]
}

// Changes of the sound run.
func nothing(*made) {}

func event(e interval.Event) func(*made) {
	return func(m *made) { m.in.Events = append(m.in.Events, e) }
}

func each(change func(*interval.Interval)) func(*made) {
	return func(m *made) {
		for i := range m.intervals {
			change(&m.intervals[i])
		}
	}
}

// cut ends vm-2 without a final interval; the run powered off the VM.
func cut(vm string) func(*made) {
	return func(m *made) {
		m.intervals = m.intervals[:len(m.intervals)-1]
		event(interval.Event{AtNanos: 69*second + 5e8, Kind: interval.EventAnnotation, Workload: "w", Instance: 2, Subject: vm, CutByRun: true})(m)
	}
}

// copied lets both VMs be busy in n seconds only, with the same samples.
func copied(n int) func(*made) {
	return func(m *made) {
		for i := 0; i < len(m.intervals); i += 2 {
			if i/2 >= n {
				m.intervals[i].Directions = interval.Traffics{}
			}
			m.intervals[i+1].Directions = m.intervals[i].Directions
		}
	}
}

// rises lets the IOPS of both VMs rise by so many operations per second, each second.
func rises(n int) func(*made) {
	return func(m *made) {
		for i := range m.intervals {
			m.intervals[i].Directions[interval.Read].Operations = uint64(500 + n*(i/2)/2)
		}
	}
}

// responds gives all operations one response time.
func responds(nanos uint64) func(*made) {
	return func(m *made) {
		h := &stat.Histogram{}
		h.RecordN(nanos, 60_000)
		m.load().Directions[interval.Read].Response = h
	}
}

// closed makes the load a closed loop.
func closed(m *made) {
	m.load().Engines = []interval.Engine{{Name: "native", Loop: interval.LoopClosed}}
}

func engine(e interval.Engine) func(*made) {
	return func(m *made) { m.load().Engines = []interval.Engine{e} }
}

// slow gives all operations of the intervals one service time, in nanoseconds.
func slow(nanos uint64) func(*made) {
	return each(func(iv *interval.Interval) {
		iv.Directions[interval.Read].Service = &stat.Histogram{}
		iv.Directions[interval.Read].Service.RecordN(nanos, iv.Directions[interval.Read].Operations)
	})
}

// took gives the sum of all operations one service time.
func took(nanos uint64) func(*made) {
	return func(m *made) {
		m.load().Directions[interval.Read].Service = &stat.Histogram{}
		m.load().Directions[interval.Read].Service.RecordN(nanos, 60_000)
	}
}

// planned adds the steps of the plan: a prefill, and a start with a runtime.
func planned(runtime time.Duration) func(*made) {
	return func(m *made) {
		m.load().Instance = 1
		m.in.Plan.Steps = []plan.Step{{Workload: "w", Starts: &plan.LoadStart{Prefill: true}}, {Workload: "w", Starts: &plan.LoadStart{Runtime: runtime}}}
	}
}

// uneven lets vm-2 do so many operations per second, and vm-1 500.
func uneven(operations uint64) func(*made) {
	return func(m *made) {
		for i := 1; i < len(m.intervals); i += 2 {
			m.intervals[i].Directions[interval.Read].Operations = operations
		}
	}
}

// begins lets both VMs do so many operations per second in the first 6 s.
func begins(operations uint64) func(*made) {
	return each(func(iv *interval.Interval) {
		if iv.StartNanos < 16*second {
			iv.Directions[interval.Read].Operations = operations
		}
	})
}

// leavesOut adds a result that leaves out a warm-up of the load.
func leavesOut(w result.WarmUp) func(*made) {
	return func(m *made) {
		w.Workload, w.Instance = "w", 2
		m.in.Summary.Results = append(m.in.Summary.Results, result.Evaluated{Title: "Rate", Type: "iops", WarmUps: []result.WarmUp{w}})
	}
}

// blocks adds a second workload on its own disk, with larger blocks and the same number of operations.
func blocks(bytes int64) func(*made) {
	return func(m *made) {
		m.load().Total.Operations = 120_000
		m.job().BlockMin, m.job().BlockMax, m.job().QueueDepth, m.job().Clones = 4096, 4096, 1, 1
		other := m.beside("/dev/sdc", 10, 70)
		other.Total.Operations = 120_000
		j := m.job()
		m.in.Plan.Workloads[1].Load.Jobs = []load.JobPlan{*j}
		large := &m.in.Plan.Workloads[1].Load.Jobs[0]
		large.BlockMin, large.BlockMax = bytes, bytes
	}
}

// onNode runs both VMs on one node with so much memory.
func onNode(hypervisor string, memory int64) func(*made) {
	return func(m *made) {
		m.in.Plan.Target.Hypervisor = hypervisor
		m.in.Plan.Target.Nodes = []target.Node{{ID: "1", RAMBytes: memory}}
		m.in.Plan.Groups[0].VMs = []plan.VM{{Name: "vm-1", NodeID: "1"}, {Name: "vm-2", NodeID: "1"}}
	}
}

// servers places clients on nodes beside servers on nodes 1 and 2.
func servers(clients ...string) func(*made) {
	return func(m *made) {
		of := func(nodes ...string) (list []plan.VM) {
			for _, id := range nodes {
				list = append(list, plan.VM{NodeID: id})
			}
			return list
		}
		m.in.Plan.Target.Nodes = []target.Node{{ID: "1", Name: "host-1"}, {ID: "2", Name: "host-2"}, {ID: "3", Name: "host-3"}}
		m.in.Plan.Groups[0].VMs = of(clients...)
		m.in.Plan.Groups = append(m.in.Plan.Groups, plan.Group{Name: "db", VMs: of("1", "2")})
		m.in.Plan.Workloads[0].Servers = &plan.Servers{Group: "db", Holds: true}
	}
}

// busy has the CPU use of the NUMA nodes of the controller's machine.
func busy(provider string, shares ...float64) func(*made) {
	return func(m *made) {
		m.in.Plan.Target.Provider, m.in.Plan.Target.Nodes = provider, []target.Node{{ID: "1"}}
		event(interval.Event{Kind: interval.EventUsage, Usage: &interval.Usage{Busy: shares}})(m)
	}
}

// waiting has the pressure on the machine before the run.
func waiting(cpu float64) func(*made) {
	return func(m *made) {
		busy("local")(m)
		event(interval.Event{Kind: interval.EventUsage, Usage: &interval.Usage{CPUWaiting: cpu, IOWaiting: 0.02}})(m)
	}
}

// other compares the run with another one.
func other(fingerprint, ofOther string) func(*made) {
	return func(m *made) {
		m.load().Fingerprint = fingerprint
		m.in.Others = []rule.Other{{Run: "run-2", Loads: []result.LoadSummary{{Workload: "w", Fingerprint: ofOther}}}}
	}
}

var contracts = map[string]contract{
	"run-incomplete": {
		fires: func(m *made) { m.in.Summary.Ended = result.EndedInterrupted }, severity: finding.Undecided, claim: "was interrupted",
		silent: nothing,
	},
	"rehearsal": {
		fires: func(m *made) { m.in.Manifest.Rehearsal = &result.Rehearsal{Asked: 60e9, TimeFactor: 0.025} }, severity: finding.Warning, claim: "rehearsal of 1 m",
		silent: nothing,
	},
	"simulated": {
		fires: func(m *made) { m.in.Manifest.Target = result.TargetInfo{Name: "fake:4", Simulated: true} }, severity: finding.Warning, claim: "is simulated",
		silent: event(interval.Event{Kind: interval.EventStepStarted, Step: "test.Wait"}),
	},
	"generator-stalled": {
		fires: func(m *made) { m.intervals[40].StalledNanos = second / 10 }, severity: finding.Warning, claim: "longest 100 ms at 0:30",
		silent: func(m *made) { m.intervals[40].StalledNanos = second/10 - 1 },
	},
	"generator-starved": {
		fires: each(func(iv *interval.Interval) { iv.WaitedNanos = second / 20 }), severity: finding.Warning, claim: "was CPU-starved in 100 %",
		silent: each(func(iv *interval.Interval) { iv.WaitedNanos = second/20 - 1 }),
	},
	"generator-cpu-bound": {
		fires: each(func(iv *interval.Interval) { iv.BusiestNanos = second * 95 / 100 }), severity: finding.Warning, claim: "was CPU-bound in 100 %",
		silent: each(func(iv *interval.Interval) { iv.BusiestNanos = second * 94 / 100 }),
	},
	"not-issued": {
		fires: func(m *made) { m.load().NotIssued = 60 }, severity: finding.Warning, claim: "dropped 60 of 60,000",
		silent: nothing,
	},
	"backlog-at-end": {
		fires: func(m *made) { m.intervals[119].Backlog = 1000 }, severity: finding.Warning, claim: "1,000 operations (1 s of work",
		silent: func(m *made) { m.intervals[119].Backlog = 999 },
	},
	"load-errors": {
		fires: func(m *made) { m.load().Total.Errors = map[string]uint64{"EIO": 1} }, severity: finding.Warning, claim: "1 EIO",
		silent: func(m *made) { m.load().Total.Errors = map[string]uint64{} },
	},
	"intervals-missing": {
		fires: func(m *made) { m.intervals = append(m.intervals[:20], m.intervals[22:]...) }, severity: finding.Warning, claim: "2 of 120",
		silent: nothing,
	},
	"step-did-less": {
		fires:    event(interval.Event{AtNanos: 30 * second, Kind: interval.EventDisturbance, Phase: "run", Step: "playbook.Run", Message: "every task was skipped"}),
		severity: finding.Warning, claim: "Step playbook.Run did less than the scenario says at 0:30: every task was skipped.",
		silent: event(interval.Event{AtNanos: 30 * second, Kind: interval.EventDisturbance, Phase: "run", Workload: "w", Message: "w failed on vm-1"}),
	},
	"vm-stopped": {
		fires: event(interval.Event{AtNanos: 30 * second, Kind: interval.EventVMStopped, Subject: "vm-2", Error: "panic"}), severity: finding.Undecided,
		claim:  "vm-2 stopped unexpectedly at 0:30: panic.",
		silent: event(interval.Event{AtNanos: 30 * second, Kind: interval.EventAgentSilent, Subject: "vm-2"}),
	},
	"source-silent": {
		fires: event(interval.Event{AtNanos: 30 * second, Kind: interval.EventSourceSilent, Subject: "filer1", Error: "503 Service Unavailable"}), severity: finding.Info,
		claim:  "Source filer1 could not be read from 0:30 to the end of the run: 503 Service Unavailable.",
		silent: event(interval.Event{AtNanos: 30 * second, Kind: interval.EventAgentSilent, Subject: "vm-2"}),
	},
	"power-cut-unrecorded": {
		fires: cut("vm-2"), severity: finding.Info, claim: "in the last 500 ms or less before the power cut",
		silent: cut("vm-9"),
	},
	"vm-moved": {
		fires: event(interval.Event{AtNanos: 50 * second, Kind: interval.EventPlaced, Subject: "vm-1", Node: "b", From: "a", Unasked: true}), severity: finding.Warning,
		claim:  "vm-1 moved from a to b",
		silent: event(interval.Event{AtNanos: 50 * second, Kind: interval.EventPlaced, Subject: "vm-1", Node: "b", From: "a"}),
	},
	"platform-event": {
		fires: event(interval.Event{AtNanos: 50 * second, Kind: interval.EventPlatform, Platform: interval.PlatformNodeDown, Subject: "host-2",
			Node: "b", Message: "Host host-2 is not responding"}), severity: finding.Warning,
		claim:  "Platform event on host-2 at 0:50, during w: Host host-2 is not responding.",
		silent: event(interval.Event{AtNanos: 5 * second, Kind: interval.EventPlatform, Platform: interval.PlatformNodeDown, Subject: "host-2", Message: "x"}),
	},
	"identical-samples": {
		fires: copied(5), severity: finding.Undecided, claim: "identical in all 5 busy intervals",
		silent: copied(4),
	},
	"few-samples": {
		fires: func(m *made) { m.load().Directions[interval.Read].Operations = 9_999 }, severity: finding.Info, claim: "stable p99.9",
		silent: func(m *made) { m.load().Directions[interval.Read].Operations = 10_000 },
	},
	"short-workload": {
		fires: func(m *made) { m.load().ToNanos = 20*second - 1 }, severity: finding.Warning, claim: "ran for only",
		silent: func(m *made) { m.load().ToNanos = 20 * second },
	},
	"response-beyond-service": {
		fires: responds(4e6), severity: finding.Info, claim: "queued before submission",
		silent: responds(1.2e6),
	},
	"coordinated-omission": {
		fires: func(m *made) { closedLoop(m, 500e6) }, severity: finding.Warning, claim: "is a closed loop that hung",
		silent: func(m *made) { closedLoop(m, 50e6) },
	},
	"cache-suspected": {
		fires: func(m *made) { m.in.Summary.Loads[0].Workload = "other" }, severity: finding.Warning, claim: "w reads 4 GiB of unwritten data",
		silent: func(m *made) { m.in.Plan.Workloads[0].Prefill.Extents[0].Length = 4294967296 * 96 / 100 },
	},
	"not-steady": {
		fires: rises(4), severity: finding.Warning, claim: "its IOPS rose",
		silent: rises(1),
	},
	"engine-fallback": {
		fires: func(m *made) { m.load().Engines = []interval.Engine{fallen} }, severity: finding.Info, claim: "io_uring was not used",
		silent: nothing,
	},
	"clock-jumped": {
		fires: event(interval.Event{AtNanos: 20 * second, Kind: interval.EventClockJump, Subject: "vm-1", SpanNanos: second}), severity: finding.Warning, claim: "jumped once",
		silent: event(interval.Event{AtNanos: 20 * second, Kind: interval.EventLog, Subject: "vm-1", SpanNanos: second}),
	},
	"unequal-streams": {
		fires:    spread(116.5), // 20.4 and 78.3 Gbit/s of two streams, which a sum of 98.7 hides
		severity: finding.Warning, claim: "differed by 117 %",
		silent: spread(99),
	},
	"new-order-share": {
		fires:    newOrders(306939, 616230), // NOPM of one published result with TPM of another
		severity: finding.Warning, claim: "had 0.50 new orders",
		silent: newOrders(264796, 616230),
	},
	"start-skew": {
		fires: event(interval.Event{AtNanos: 10 * second, Kind: interval.EventStarts, Workload: "w", SpanNanos: second / 2}), severity: finding.Warning, claim: "500 ms",
		silent: event(interval.Event{AtNanos: 10 * second, Kind: interval.EventStarts, Workload: "w", SpanNanos: second/2 - 1}),
	},
	"machine-shared": {
		fires: event(interval.Event{AtNanos: 10 * second, Kind: interval.EventShared, Subject: "run-2"}), severity: finding.Warning, claim: `Run "run-2" used the same machine`,
		silent: event(interval.Event{AtNanos: 10 * second, Kind: interval.EventAlone, Subject: "run-2"}),
	},
	"controller-paused": {
		fires: event(interval.Event{AtNanos: 40 * second, Kind: interval.EventPaused, Subject: "controller", SpanNanos: 30 * second}), severity: finding.Warning,
		claim:  "paused for 30 s",
		silent: event(interval.Event{AtNanos: 40 * second, Kind: interval.EventLog, Subject: "controller", SpanNanos: 30 * second}),
	},
	"buffered-writes": {
		fires:    func(m *made) { m.writes(); m.job().Direct = false },
		severity: finding.Warning, claim: `w wrote 469 MiB through the page cache (job ""):`,
		silent: func(m *made) { m.writes(); m.job().Direct, m.job().Flushes = false, true },
	},
	"first-writes": {
		fires: func(m *made) { m.writes(); m.in.Summary.Loads[0].Workload = "other" }, severity: finding.Warning,
		claim:  "w writes to 4 GiB per VM that nothing wrote before",
		silent: func(m *made) { m.writes() },
	},
	"not-preconditioned": {
		fires: func(m *made) { m.writes(); m.in.Summary.Loads[0].Directions[interval.Write].Bytes = 2 * 4 << 30 }, severity: finding.Info,
		claim:  "w overwrites 4 GiB per VM at random that this run had written 1.00 times",
		silent: func(m *made) { m.writes(); m.in.Summary.Loads[0].Directions[interval.Write].Bytes = 4 * 4 << 30 },
	},
	"reducible-content": {
		fires: func(m *made) { m.writes(); m.job().Reducible = 1 }, severity: finding.Warning, claim: "saves up to 100 %",
		silent: func(m *made) { m.writes() },
	},
	"tiny-working-set": {
		fires: func(m *made) { m.workingSet(32<<20 - 1) }, severity: finding.Warning, claim: "w uses only 32 MiB per disk",
		silent: func(m *made) { m.workingSet(256 << 20) },
	},
	"misaligned": {
		fires: func(m *made) { m.job().AlignBytes, m.job().BlockMax = 512, 8192 }, severity: finding.Warning,
		claim:  `w: offsets and sizes of job "" are multiples of 512 B, not of 4 KiB.`,
		silent: func(m *made) { m.job().AlignBytes, m.job().BlockMax = 512, 512 },
	},
	"same-region": {
		fires: func(m *made) { m.job().SameRegion, m.job().Clones = true, 4 }, severity: finding.Warning, claim: "3 of 4 operations can be served",
		silent: func(m *made) { m.job().Clones = 4 },
	},
	"synchronous-engine": {
		fires: func(m *made) { m.job().DepthAsked, m.job().QueueDepth = 32, 1 }, severity: finding.Warning, claim: "requests iodepth=32 from a synchronous engine",
		silent: func(m *made) { m.job().DepthAsked, m.job().QueueDepth = 1, 1 },
	},
	"arrivals-in-bursts": {
		fires: func(m *made) { m.job().Linear, m.job().Clones = true, 16 }, severity: finding.Warning, claim: "in bursts of 16",
		silent: func(m *made) { m.job().Linear, m.job().Clones = true, 2 },
	},
	"disk-shared": {
		fires: func(m *made) { m.beside("/dev/sdb", 30, 60) }, severity: finding.Warning,
		claim:  "w and other used the same devices (/dev/sdb) of the same VMs from 0:30 to 1:00.",
		silent: func(m *made) { m.beside("/dev/sdc", 30, 60) },
	},
	"littles-law": {
		fires: func(m *made) { m.job().QueueDepth, m.job().Clones = 1, 1; slow(2.3e6)(m) }, severity: finding.Undecided,
		claim:  "are 1.1 in flight, but its jobs have a queue depth of 1.",
		silent: func(m *made) { m.job().QueueDepth, m.job().Clones = 1, 1; slow(2e6)(m) },
	},
	"depth-not-reached": {
		fires: func(m *made) { closed(m); m.job().QueueDepth, m.job().Clones = 8, 4; slow(2e6)(m) }, severity: finding.Warning,
		claim:  "had at most 1 of 32 operations in flight",
		silent: func(m *made) { closed(m); m.job().QueueDepth, m.job().Clones = 1, 1; slow(1.81e6)(m) },
	},
	"rate-not-reached": {
		fires: func(m *made) { m.job().RateIOPS = 600 }, severity: finding.Warning, claim: "w issued 500 of 600 operations/s per VM (83 %)",
		silent: func(m *made) { m.job().RateIOPS = 505 },
	},
	"faster-than-storage": {
		fires: took(4_900), severity: finding.Warning, claim: "Half of the read operations of w took 4.9 µs or less",
		silent: took(5_100),
	},
	"no-io": {
		fires: func(m *made) {
			m.load().Engines = []interval.Engine{{Name: "native", Backends: []string{"io_uring", "null"}}}
		}, severity: finding.Undecided,
		claim:  "w ran with the null engine",
		silent: nothing,
	},
	"bytes-mismatch": {
		fires: func(m *made) { m.job().BlockMin, m.job().BlockMax = 16384, 65536 }, severity: finding.Undecided,
		claim:  "w moved 8 KiB per operation, but its blocks have 16 KiB at least and 64 KiB at most.",
		silent: func(m *made) { m.job().BlockMin, m.job().BlockMax = 4096, 8192 },
	},
	"old-fio": {
		fires: engine(interval.Engine{Name: "fio", Version: "3.2"}), severity: finding.Warning, claim: "w was run by fio 3.2",
		silent: engine(interval.Engine{Name: "fio", Version: "3.33-12-gabc"}),
	},
	"service-time-only": {
		fires: engine(interval.Engine{Name: "fio", Version: "3.33", Loop: interval.LoopPaced}), severity: finding.Info, claim: "response time is unknown",
		silent: engine(interval.Engine{Name: "fio", Version: "3.33", Loop: interval.LoopClosed}),
	},
	"ended-early": {
		fires: planned(2 * time.Minute), severity: finding.Warning, claim: "w ended after 1 m of 2 m",
		silent: planned(63 * time.Second),
	},
	"vm-imbalance": {
		fires: func(m *made) { closed(m); uneven(300)(m) }, severity: finding.Info, claim: "w is uneven: 500 IOPS on vm-1, 300 IOPS on vm-2.",
		silent: func(m *made) { closed(m); uneven(350)(m) },
	},
	"stretched-intervals": {
		fires: func(m *made) {
			m.intervals = append(m.intervals[:58], m.intervals[60:]...)
			m.intervals[56].LengthNanos = 2 * second
		}, severity: finding.Info,
		claim:  "Intervals of w last up to 2 s (1.02 s on average, on vm-1)",
		silent: func(m *made) { m.intervals[58].LengthNanos = 14 * second / 10 },
	},
	"warm-up-included": {
		fires: begins(300), severity: finding.Info, claim: "w: IOPS of its first 6 s lie 40 % below those of the rest",
		silent: begins(420),
	},
	"warm-up-left-out": {
		fires: leavesOut(result.WarmUp{FromNanos: 10 * second, ToNanos: 16 * second, Steady: true, Why: "its IOPS rose by 34 % (limit 10 %)"}), severity: finding.Info,
		claim:  "w: its first 6 s are left out of Rate as warm-up: with them, its IOPS rose by 34 % (limit 10 %).",
		silent: leavesOut(result.WarmUp{FromNanos: 10 * second, ToNanos: 10 * second, Steady: true}),
	},
	"not-settled": {
		fires: leavesOut(result.WarmUp{FromNanos: 10 * second, ToNanos: 10 * second, Why: "w did not become steady in its first 60 s: too short to say"}), severity: finding.Warning,
		claim:  "w did not become steady in its first 60 s: too short to say. Thresholds of Rate are undecided.",
		silent: event(interval.Event{AtNanos: 40 * second, Kind: interval.EventSteady, Workload: "w", SpanNanos: 30 * second}),
	},
	"elided-work": {
		fires: blocks(1 << 20), severity: finding.Warning, claim: "reach the same rate (1,000 and 1,000 IOPS per VM) with blocks of 4 KiB and 1 MiB",
		silent: blocks(256 << 10),
	},
	"prefill-incomplete": {
		fires: func(m *made) { m.in.Summary.Loads[0].Total.Bytes = 2 * 2 << 30 }, severity: finding.Warning, claim: "The prefill of w wrote 2 GiB of 4 GiB per VM",
		silent: func(m *made) { m.in.Summary.Loads[0].Total.Bytes = 2 * 4 << 30 },
	},
	"memory-disk": {
		fires: engine(noting(interval.NoteMemory, "tmpfs")), severity: finding.Warning, claim: "The disks of w are in memory (tmpfs)",
		silent: engine(ring),
	},
	"small-data-set": {
		fires: engine(noting(interval.NoteSmallData, "the data set has 1 GiB")), severity: finding.Warning, claim: "w: the data set has 1 GiB.",
		silent: engine(noting("mount", "nfs4 nas:/train (rw,nconnect=16)")),
	},
	"memory-in-caches": {
		fires: engine(noting(interval.NoteInCaches, "arrays of 1 MiB")), severity: finding.Warning, claim: "w: arrays of 1 MiB.",
		silent: engine(noting("stream-like", "a pass takes fewer than 20 ticks of the clock")),
	},
	"scale-below-clients": {
		fires: engine(noting(interval.NoteContended, "32 clients update 10 rows")), severity: finding.Warning, claim: "w: 32 clients update 10 rows.",
		silent: engine(noting("mount", "nfs4 nas:/train (rw,nconnect=16)")),
	},
	"huge-pages-refused": {
		fires: engine(noting(interval.NoteSmallPages, "huge_pages=try, and none")), severity: finding.Warning, claim: "w: huge_pages=try, and none.",
		silent: engine(noting(interval.NoteResolution, "huge pages are another's")),
	},
	"checkpoint-stalls": {
		fires: checkpoints(func(at int64) float64 { return map[int64]float64{41: 0.2, 42: 0.1, 43: 0.4}[at] }), severity: finding.Info,
		claim: "w: the rate fell at 2 of 2 checkpoints, at worst to 23 % for 3 s, from 500 to 117 operations/s at 0:41.",
		silent: checkpoints(func(at int64) float64 {
			return map[int64]float64{30: 0.1, 31: 0.1, 41: 0.2, 43: 0.2, 44: 0.6, 45: 0.6}[at]
		}),
	},
	"few-checkpoints": {
		fires: database(31*second, 1), severity: finding.Warning,
		claim:  "w was measured for 1 m, less than two checkpoint intervals of its database (31 s each): 1 checkpoint began.",
		silent: database(30*second, 1),
	},
	"fits-in-host-memory": {
		fires: onNode("kvm", 8<<30+1), severity: finding.Info, claim: "w uses 8 GiB per node, which fit into its 8 GiB of memory",
		silent: onNode("kvm", 8<<30),
	},
	"generator-on-target": {
		fires: busy("local", 0.91, 0.91), severity: finding.Warning, claim: "which used 91 % of its CPU time in the run phase",
		silent: busy("libvirt", 0.91, 0.91),
	},
	"clients-beside-server": {
		fires: servers("1", "3", "1", "3"), severity: finding.Warning, claim: "2 of 4 VMs with clients of w are on the node of their server (host-1), and share its CPUs.",
		silent: servers("2", "1", "3", "1"),
	},
	"machine-busy": {
		fires: waiting(0.1), severity: finding.Info, claim: "waited for a CPU in 10 % of a minute, and for I/O in 2 %",
		silent: waiting(0.09),
	},
	"numa-imbalance": {
		fires: busy("local", 0.4, 0.2), severity: finding.Warning, claim: "40 % on node 0, 20 % on node 1",
		silent: busy("local", 0.39, 0.2),
	},
	"cpu-governor": {
		fires: func(m *made) {
			busy("local")(m)
			m.in.Manifest.Environment = map[string]string{"cpu governor": "powersave"}
		}, severity: finding.Info,
		claim: "was powersave",
		silent: func(m *made) {
			busy("local")(m)
			m.in.Manifest.Environment = map[string]string{"cpu governor": "performance"}
		},
	},
	"copied-run": {
		fires: other("a", "a"), severity: finding.Undecided, claim: "The raw samples of w are those of run run-2",
		silent: other("a", "b"),
	},
}

// TestContract: every rule fires where it should, is silent next to that, and has its section in the guide.
func TestContract(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join(testreq.RepositoryRoot(t), "docs", "guides", "audit.md"))
	if err != nil {
		t.Fatal(err)
	}
	of := func(change func(*made), code string) (found []finding.Finding) {
		m := sound()
		change(m)
		return slices.DeleteFunc(m.check(), func(f finding.Finding) bool { return f.Code != code })
	}
	for _, r := range audit.Rules() {
		c, ok := contracts[r.Code]
		if !ok {
			t.Errorf("rule %q has no contract", r.Code)
			continue
		}
		if found := of(c.fires, r.Code); len(found) == 0 || found[0].Severity != c.severity || !strings.Contains(found[0].Claim, c.claim) {
			t.Errorf("rule %q: got %+v, want severity %s and %q", r.Code, found, c.severity, c.claim)
		}
		if found := of(c.silent, r.Code); len(found) > 0 {
			t.Errorf("rule %q is not silent: %+v", r.Code, found)
		}
		if !strings.Contains(string(guide), "\n## "+r.Code+"\n") || !strings.Contains(string(guide), "(#"+r.Code+") | "+r.Summary+" |\n") {
			t.Errorf("rule %q has no section in the guide, or is not in its list with its summary", r.Code)
		}
	}
}

// spread is a load whose streams differ by that many percent.
func spread(percent float64) func(*made) {
	return func(m *made) {
		m.load().Gauges = []result.GaugeStats{{Gauge: interval.Gauge{Name: interval.GaugeStreamSpread, Unit: "%"}, Mean: result.Number(percent)}}
	}
}

// newOrders is a load of TPROC-C with one result.
func newOrders(nopm, tpm float64) func(*made) {
	return newOrdersOf(interval.GaugeNewOrderShare, nopm/tpm, nopm/tpm)
}

// newOrdersOf is one whose VMs have shares from least to most.
func newOrdersOf(meaning interval.GaugeMeaning, least, most float64) func(*made) {
	return func(m *made) {
		m.load().Gauges = []result.GaugeStats{{Gauge: interval.Gauge{Name: "share of new orders", Meaning: meaning}, Min: result.Number(least), Max: result.Number(most)}}
	}
}

func TestNewOrderShare(t *testing.T) {
	usual, oracle := interval.GaugeNewOrderShare, interval.GaugeNewOrderShareOracle
	for _, c := range []struct {
		meaning     interval.GaugeMeaning
		least, most float64
		want        string // in the finding; "" for none
	}{
		{usual, 264796. / 616230, 264796. / 616230, ""}, {usual, 306939. / 713241, 128176. / 298394, ""}, {usual, 4673. / 11132, 6376. / 14701, ""},
		{usual, 0.40, 0.47, ""}, {usual, 0.21, 0.43, "had 0.21"}, {usual, 0.43, 1, "had 1.00"}, {usual, 0.399, 0.43, "expected are 0.40 to 0.47"},
		{usual, 0.43, 0.471, "had 0.47"}, {usual, 1. / 3, 1. / 3, "had 0.33"}, {usual, math.NaN(), math.NaN(), ""},
		{oracle, 1. / 3, 1. / 3, ""}, {oracle, 8043. / 16365, 8043. / 16365, ""}, {oracle, 0.309, 1. / 3, "expected are 0.31 to 0.52"}, {oracle, 1. / 3, 0.53, "had 0.53"},
		{"", 0.1, 0.9, ""},
	} {
		m := sound()
		newOrdersOf(c.meaning, c.least, c.most)(m)
		claims := ""
		for _, f := range m.check() {
			if f.Code == "new-order-share" {
				claims += f.Claim
			}
		}
		if (claims == "") != (c.want == "") || !strings.Contains(claims, c.want) {
			t.Errorf("%+v: %q", c, claims)
		}
	}
}
