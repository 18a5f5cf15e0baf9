package data

import (
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// Blocks that differ by so much cost any medium more: at 100 times the size, even a hard disk needs a third more time.
	elidedRatio = 100
	// elidedApart: the same rate, within the noise of two loads.
	elidedApart = 0.05
	// bandwidthMax is that of 16 lanes of PCIe 5.0, in bytes per second: no device of one VM moves more.
	bandwidthMax = 63e9
	// threadBandwidthMax is that of three loads of 8 bytes in each cycle at 6 GHz, in bytes per second: no core executes more, whatever
	// cache serves them.
	threadBandwidthMax = 144e9
	// threadsRatio: so many times the threads do more work, unless they wait for each other.
	threadsRatio = 4
	// saturatingMin, in bytes per second, is less than a channel of the slowest memory in use carries: DDR3-800 has 6.4 GB/s.
	saturatingMin = 1e9
)

var ElidedWork = rule.Rule{
	Code:    "elided-work",
	Summary: "the work of a workload does not grow with its block size or threads",
	Doc: "Two closed loops that differ only in block size, by a factor of 100 or more, reach the same IOPS within 5 %; or the " +
		"VMs move more data than 16 lanes of PCIe 5.0 (63 GB/s each), or threads access memory faster than their cores execute loads (144 GB/s each). " +
		"Data is then not moved: a layer answers from metadata, compresses it away, or skips the transfer; a compiler removed the accesses. " +
		"Loads on memory that move less than 1 GB/s are also compared by threads: 4 times as many that reach the same rate wait for a lock.",
	Example:  `Small and Large reach the same rate (12,300 and 12,400 IOPS per VM) with blocks of 4 KiB and 1 MiB: work does not grow with block size.`,
	Check:    checkElidedWork,
	Flatters: true,
}

func checkElidedWork(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	loads, covered := rule.Planned(in), map[string]bool{}
	for i := range loads {
		a := &loads[i]
		list = append(list, tooFast(in, a)...)
		if covered[a.Workload] { // an earlier finding names it
			continue
		}
		for _, k := range elidedKinds {
			var same []*rule.Load
			for j := range loads[i+1:] {
				if b := &loads[i+1+j]; k.differ(in, a, b) && sameRate(a, b) {
					same = append(same, b)
					covered[b.Workload] = true
				}
			}
			if len(same) > 0 {
				list = append(list, k.found(in, a, same))
			}
		}
	}
	return list
}

// perVM is a rate in one VM.
func perVM(l *rule.Load, n uint64) float64 {
	return float64(n) / float64(max(1, l.VMs)) / float64(l.ToNanos-l.FromNanos) * 1e9
}

func sameRate(a, b *rule.Load) bool {
	x, y := perVM(a, a.Total.Operations), perVM(b, b.Total.Operations)
	return x > 0 && math.Abs(x-y) <= elidedApart*max(x, y)
}

// tooFast finds more bytes per second than hardware moves.
func tooFast(in *rule.Input, l *rule.Load) []finding.Finding {
	rate := perVM(l, l.Total.Bytes)
	threads := parallel(in, l)
	switch {
	case in.Manifest.Target.Simulated:
	case rate > bandwidthMax && l.Engine().DoesIO():
		return []finding.Finding{in.About(l.LoadSummary, finding.Warning, "Check that the engine does I/O, and that the data is neither zeros nor unwritten.",
			"%s moved %s/s per VM: more than any device can transfer.", in.Name(l.LoadSummary), unit.FormatBytes(int64(rate)))}
	case memoryOnly(l) && rate > threadBandwidthMax*float64(threads):
		return []finding.Finding{in.About(l.LoadSummary, finding.Warning,
			"Use a version of the program whose compiler does not remove the accesses: sysbench 1.0 or newer.",
			"%s accessed %s/s of memory per VM with %s: more than a core executes.", in.Name(l.LoadSummary), unit.FormatBytes(int64(rate)),
			textio.Plural(threads, "thread"))}
	}
	return nil
}

// parallel is how many threads of a load on memory execute at a time in each VM, as far as the size of the VM is known.
func parallel(in *rule.Input, l *rule.Load) int {
	threads := max(1, l.Plan.Depth())
	for _, g := range in.KnownPlan().Groups {
		if g.Name == l.Group && g.VCPUs > 0 {
			threads = min(threads, g.VCPUs)
		}
	}
	return threads
}

// elidedKind is a property of a load whose growth costs any medium more, or lets it do more.
type elidedKind struct {
	differ func(in *rule.Input, a, b *rule.Load) bool
	value  func(in *rule.Input, l *rule.Load) string
	claim  string // with the values of two loads
	memory string // advice about loads on memory
}

var elidedKinds = []elidedKind{
	{func(_ *rule.Input, a, b *rule.Load) bool { return differInBlock(a, b) },
		func(_ *rule.Input, l *rule.Load) string { return unit.FormatBytes(l.Plan.Jobs[0].BlockMax) },
		"with blocks of %s and %s: work does not grow with block size",
		"Check that the program accesses the memory that it counts, and that its compiler did not remove the accesses."},
	{differInThreads,
		func(in *rule.Input, l *rule.Load) string { return textio.Plural(parallel(in, l), "thread") },
		"with %s and %s: a lock or a clock is measured, not memory",
		"Use larger blocks, so that accesses cost more than counting them, or memory of each thread's own (scope: local)."},
}

// found makes the finding about a load and those with the same rate, of which it names the last one.
func (k elidedKind) found(in *rule.Input, a *rule.Load, same []*rule.Load) finding.Finding {
	advice := k.memory
	if !memoryOnly(a) {
		advice = "Check that data is written before it is read, that it is not reducible, and that no limit of IOPS applies."
	}
	rate := func(l *rule.Load) string { return unit.FormatWhole(uint64(perVM(l, l.Total.Operations))) }
	last := same[len(same)-1]
	f := in.About(a.LoadSummary, finding.Warning, advice, "%s and %s reach the same rate (%s and %s %s per VM) %s.", in.Name(a.LoadSummary),
		in.Name(last.LoadSummary), rate(a), rate(last), a.Engine().RateUnit(), fmt.Sprintf(k.claim, k.value(in, a), k.value(in, last)))
	for _, l := range same[:len(same)-1] {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s %s per VM with %s", in.Name(l.LoadSummary), rate(l), l.Engine().RateUnit(), k.value(in, l)))
	}
	return f
}

// memoryOnly reports whether a load accesses memory and no device.
func memoryOnly(l *rule.Load) bool {
	return len(l.Plan.Jobs) > 0 && !slices.ContainsFunc(l.Plan.Jobs, func(j load.JobPlan) bool { return !j.Memory })
}

// differInBlock reports whether two closed loops of one job each differ in block size by elidedRatio or more, and in nothing else.
func differInBlock(a, b *rule.Load) bool {
	if len(a.Plan.Jobs) != 1 || len(b.Plan.Jobs) != 1 || a.Group != b.Group {
		return false
	}
	x, y := &a.Plan.Jobs[0], &b.Plan.Jobs[0]
	small, large := min(x.BlockMax, y.BlockMax), max(x.BlockMin, y.BlockMin)
	return x.Pattern == y.Pattern && x.QueueDepth == y.QueueDepth && x.Clones == y.Clones && x.RateIOPS == 0 && y.RateIOPS == 0 &&
		small > 0 && large >= elidedRatio*small
}

// differInThreads reports whether two loads on memory differ in the number of their threads, by threadsRatio or more, and in nothing else.
// Memory that all threads together saturate is as fast with fewer of them; so little data cannot saturate any.
func differInThreads(in *rule.Input, a, b *rule.Load) bool {
	if len(a.Plan.Jobs) != 1 || len(b.Plan.Jobs) != 1 || a.Group != b.Group || !memoryOnly(a) || !memoryOnly(b) {
		return false
	}
	x, y := a.Plan.Jobs[0], b.Plan.Jobs[0]
	few, many := min(parallel(in, a), parallel(in, b)), max(parallel(in, a), parallel(in, b))
	return x.Pattern == y.Pattern && x.BlockMax == y.BlockMax && x.BlockMin == y.BlockMin && x.BlockMax > 0 && many >= threadsRatio*few &&
		max(perVM(a, a.Total.Bytes), perVM(b, b.Total.Bytes)) < saturatingMin
}
