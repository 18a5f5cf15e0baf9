// Package traps has runs whose numbers look good and are wrong, each in one way, and healthy runs beside them. The audit must find the
// fault, by the rule that is meant for it, and must not warn about a healthy run.
//
//	job file ──native engine: Plan──▶ plan ┐
//	scripted storage, or real files ───────┴──▶ bundle ──evaluate──▶ findings, verdict, validity
//
// Scripted storage is driven in virtual time, so that a run of a minute takes no time; traps of caches and disks run for real.
package traps

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/testreq"
)

const (
	reading = "rw=randread bs=8k iodepth=8 size=4g "
	writing = "rw=randwrite bs=8k iodepth=8 size=4g "
	rated   = "rw=randread bs=8k iodepth=64 size=4g rate_iops=1000 "
)

// trap is a run with one fault. Its numbers meet its thresholds, and do not mean what the thresholds ask.
type trap struct {
	name    string
	run     func(s *scene)
	code    string // of the rule that has to find it
	expect  []scenario.Threshold
	invalid bool // a PASS without a warning would be false
}

// quick and slow are thresholds on latency.
var (
	quick = []scenario.Threshold{{Statistic: "p99", Operator: "<", Value: 50e6, Text: "p99 < 50 ms"}}
	slow  = []scenario.Threshold{{Statistic: "p99", Operator: "<", Value: 30e9, Text: "p99 < 30 s"}}
)

var scripted = []trap{
	{"drift", func(s *scene) {
		s.runs("load", reading, 60, slower(func(at int64) float64 { return 1 + float64(at)/60e9 }))
	}, "not-steady", quick, false},
	{"drift of latency under a rate", func(s *scene) {
		s.runs("load", rated, 60, slower(func(at int64) float64 { return 1 + float64(at)/60e9 }))
	}, "not-steady", quick, false},
	{"square wave", func(s *scene) {
		s.runs("load", reading, 60, slower(func(at int64) float64 { return 1 + float64(at/10e9%2) }))
	}, "not-steady", quick, false},
	{"outage", func(s *scene) {
		other := fast()
		s.runs("load", reading, 30, func(n uint64, at int64) (int64, string) {
			if at > 12*second && at < 12*second+100*millisecond {
				return 1900 * millisecond, ""
			}
			return other(n, at)
		})
	}, "coordinated-omission", []scenario.Threshold{{Statistic: "p99.9", Operator: "<", Value: 20e6, Text: "p99.9 < 20 ms"}}, true},
	{"dropped operations", func(s *scene) {
		s.runs("load", "rw=randread bs=8k iodepth=1 size=4g rate_iops=1000", 60, slower(func(int64) float64 { return 4 }))
	}, "not-issued", slow, true},
	{"errors", func(s *scene) {
		other := fast()
		s.runs("load", reading, 60, func(n uint64, at int64) (int64, string) {
			if n%4 == 1 {
				return 50_000, "EIO"
			}
			return other(n, at)
		})
	}, "load-errors", quick, true},
	{"reads of what was never written", func(s *scene) {
		w := s.planned("load", reading)
		w.Prefill = nil
		s.drives(w, reading, 60, fast())
	}, "cache-suspected", quick, true},
	{"prefill that ended early", func(s *scene) {
		w := s.planned("load", reading)
		s.prefill("load", 0.3)
		s.drives(w, reading, 60, fast())
	}, "prefill-incomplete", quick, true},
	{"random writes in place of a prefill", func(s *scene) {
		job := "rw=randwrite bs=64k iodepth=1 size=4g norandommap rate_iops=1000"
		w := s.planned("fill", job)
		w.Prefill = nil
		s.drives(w, job, 60, fast())
		w = s.planned("load", reading)
		w.Prefill = nil
		s.drives(w, reading, 60, fast())
	}, "prefill-incomplete", quick, true},
	{"tiny working set", func(s *scene) { s.runs("load", "rw=randread bs=8k iodepth=8 size=16m", 60, fast()) }, "tiny-working-set", quick, true},
	{"shared disk", func(s *scene) {
		s.runs("load", reading, 60, fast())
		s.at -= 40 * second
		s.runs("backup", "rw=read bs=64k iodepth=4 size=4g", 30, fast())
	}, "disk-shared", quick, true},
	{"zeros", func(s *scene) { s.runs("load", writing+"zero_buffers=1", 60, fast()) }, "reducible-content", quick, true},
	{"one block again and again", func(s *scene) { s.runs("load", writing+"dedupe_percentage=100", 60, fast()) }, "reducible-content", quick, true},
	{"synchronous engine with a queue depth", func(s *scene) { s.runs("load", reading+"ioengine=psync iodepth=32", 60, fast()) }, "synchronous-engine", quick, true},
	{"clones on one range", func(s *scene) { s.runs("load", "rw=read bs=64k iodepth=2 size=4g numjobs=4", 60, fast()) }, "same-region", quick, true},
	{"misaligned operations", func(s *scene) { s.runs("load", reading+"offset=512", 60, fast()) }, "misaligned", quick, true},
	{"first writes", func(s *scene) {
		w := s.planned("load", writing)
		w.Prefill = nil
		s.drives(w, writing, 60, fast())
	}, "first-writes", quick, true},
	{"work that does not grow", func(s *scene) {
		s.runs("small", "rw=randread bs=4k iodepth=8 size=4g", 60, fast())
		s.runs("large", "rw=randread bs=1m iodepth=8 size=4g", 60, slower(func(int64) float64 { return 1.01 }))
	}, "elided-work", quick, true},
	{"identical samples", func(s *scene) {
		list := s.runs("load", reading, 60, fast())
		for i := range list[:60] {
			list[60+i].Directions = list[i].Directions
		}
	}, "identical-samples", quick, true},
	{"latency that contradicts the queue depth", func(s *scene) {
		for _, iv := range s.runs("load", reading, 60, fast()) {
			h := iv.Directions[interval.Read].Service
			mean, n := h.Mean(), h.Count()
			h.Reset()
			h.RecordN(uint64(1.2*mean), n)
		}
	}, "littles-law", quick, true},
	{"rate that is not reached", func(s *scene) {
		w := s.planned("load", "rw=randread bs=8k iodepth=1 size=4g rate_iops=2000")
		s.prefill("load", 1)
		w.Load.Engine.Loop = interval.LoopPaced // as fio runs a rate
		s.manifest.Engines["load"] = w.Load.Engine
		w.Load.Jobs[0].RateIOPS = 1400
		s.drives(w, "", 60, fast())
		w.Load.Jobs[0].RateIOPS = 2000
	}, "rate-not-reached", nil, true},
	{"starved generator", func(s *scene) {
		list := s.runs("load", rated, 60, fast())
		for i := range list {
			list[i].WaitedNanos = second / 8
		}
	}, "generator-starved", quick, true},
	{"generator that stalls", func(s *scene) { s.runs("load", rated, 60, fast())[30].StalledNanos = 800 * millisecond }, "generator-stalled", quick, true},
	{"lost intervals", func(s *scene) {
		s.runs("load", reading, 60, fast())
		s.intervals = slices.Delete(s.intervals, 20, 23)
	}, "intervals-missing", quick, true},
	{"few samples", func(s *scene) { s.runs("load", "rw=randread bs=8k iodepth=8 size=4g rate_iops=40", 60, fast()) }, "few-samples", quick, false},
	{"clones due at the same instants", func(s *scene) {
		s.runs("load", "rw=randread bs=8k iodepth=4 size=4g numjobs=16 rate_iops=20 rate_process=linear", 60, fast())
	}, "arrivals-in-bursts", quick, true},
	{"faster than any disk", func(s *scene) {
		s.runs("load", "rw=randread bs=8k iodepth=1 size=4g rate_iops=2000", 60, func(n uint64, _ int64) (int64, string) { return 1900 + int64(n%13), "" })
	}, "faster-than-storage", quick, true},
	{"backlog", func(s *scene) {
		s.runs("load", "rw=randread bs=8k iodepth=1 size=4g rate_iops=1700", 60, slower(func(int64) float64 { return 1.1 }))
	}, "backlog-at-end", slow, true},
	{"warm-up in the mean", func(s *scene) {
		s.runs("load", reading, 60, slower(func(at int64) float64 { return map[bool]float64{true: 3, false: 1}[at < 6*second] }))
	}, "warm-up-included", quick, false},
	{"end before the runtime", func(s *scene) {
		s.runs("load", reading, 20, fast())
		s.steps("load", time.Minute)
	}, "ended-early", quick, true},
	{"a database between two checkpoints", func(s *scene) { s.database(300*second, 60) }, "few-checkpoints", quick, true},
	{"bytes that do not fit", func(s *scene) {
		list := s.runs("load", reading, 60, fast())
		for i := range list {
			list[i].Directions[interval.Read].Bytes /= 2
		}
	}, "bytes-mismatch", quick, true},
}

// real traps run on files of this machine.
var realTraps = []trap{
	{"buffered writes", func(s *scene) {
		s.disks(s.t.TempDir(), 64<<20, true)
		s.really("load", "rw=randwrite bs=8k iodepth=4 direct=0", realRuntime)
	}, "buffered-writes", nil, true},
	{"holes", func(s *scene) {
		s.disks(s.t.TempDir(), 64<<20, false)
		s.really("load", "rw=randread bs=8k iodepth=4", realRuntime)
	}, "cache-suspected", nil, true},
	{"data that stays in the page cache", func(s *scene) {
		s.disks(s.t.TempDir(), 64<<20, true)
		s.really("load", "rw=randread bs=8k iodepth=1 direct=0 invalidate=0 ioengine=psync", realRuntime)
	}, "cache-suspected", nil, true},
	{"a disk in memory", func(s *scene) {
		folder, err := os.MkdirTemp("/dev/shm", "bragg-traps-*")
		if err != nil {
			testreq.Skip(s.t, "no memory to make a disk in: "+err.Error())
		}
		s.t.Cleanup(func() { _ = os.RemoveAll(folder) })
		s.disks(folder, 64<<20, true)
		s.really("load", "rw=randread bs=8k iodepth=4", realRuntime)
	}, "memory-disk", nil, true},
	{"no I/O at all", func(s *scene) {
		s.disks(s.t.TempDir(), 64<<20, true)
		s.really("load", "rw=randread bs=8k iodepth=4 ioengine=null", realRuntime)
	}, "no-io", nil, true},
	{"a short run", func(s *scene) {
		s.disks(s.t.TempDir(), 64<<20, true)
		s.really("load", "rw=randread bs=8k iodepth=4", realRuntime)
	}, "short-workload", nil, true},
}

// realRuntime of traps that a rule of the plan or of the disk finds however short they are.
const realRuntime = 1500 * time.Millisecond

// TestTraps: every trap is found by its rule, and none of the false ones passes without a warning.
func TestTraps(t *testing.T) {
	traps := scripted
	if !testing.Short() {
		traps = append(slices.Clone(scripted), realTraps...)
	}
	found := 0
	for _, c := range traps {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			c.run(s)
			summary := s.evaluate(scenario.Result{Name: "latency", Source: scenario.FromGroup, Group: "g", Type: "latency", Aggregate: "mean", Expect: c.expect})
			if slices.ContainsFunc(summary.Findings, func(f finding.Finding) bool { return f.Code == c.code }) {
				found++
			} else {
				t.Errorf("rule %q did not find it: %s", c.code, claims(summary))
			}
			if c.invalid && summary.Verdict == result.Pass && !warned(summary) {
				t.Errorf("PASS without a warning: %s", claims(summary))
			}
			t.Log(summary.Verdict, claims(summary))
		})
	}
	t.Logf("%d of %d traps found", found, len(traps))
}

// warned reports whether a finding restricts the numbers.
func warned(s result.Summary) bool {
	return slices.ContainsFunc(s.Findings, func(f finding.Finding) bool { return f.Severity != finding.Info })
}

func claims(s result.Summary) (all string) {
	for _, f := range s.Findings {
		all += "\n" + string(f.Severity) + " " + f.Code + ": " + f.Claim
	}
	return all
}
