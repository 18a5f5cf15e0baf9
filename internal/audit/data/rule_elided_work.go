package data

import (
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load"
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
)

var ElidedWork = rule.Rule{
	Code:    "elided-work",
	Summary: "the work of a workload does not grow with its block size",
	Doc: "Two closed loops that differ only in block size, by a factor of 100 or more, reach the same IOPS within 5 %; or the " +
		"VMs move more data than 16 lanes of PCIe 5.0 (63 GB/s each), or a thread accesses memory faster than a core executes loads (144 GB/s). " +
		"Data is then not moved: a layer answers from metadata, compresses it away, or skips the transfer; a compiler removed the accesses.",
	Example:  `Small and Large reach the same rate (12,300 and 12,400 IOPS per VM) with blocks of 4 KiB and 1 MiB: work does not grow with block size.`,
	Check:    checkElidedWork,
	Flatters: true,
}

func checkElidedWork(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	loads := rule.Planned(in)
	perVM := func(l *rule.Load, n uint64) float64 {
		return float64(n) / float64(max(1, l.VMs)) / float64(l.ToNanos-l.FromNanos) * 1e9
	}
	for i := range loads {
		a := &loads[i]
		if rate := perVM(a, a.Total.Bytes); rate > bandwidthMax && a.Engine().DoesIO() && !in.Manifest.Target.Simulated {
			list = append(list, in.About(a.LoadSummary, finding.Warning,
				"Check that the engine does I/O, and that the data is neither zeros nor unwritten.",
				"%s moved %s/s per VM: more than any device can transfer.", in.Name(a.LoadSummary), unit.FormatBytes(int64(rate))))
		}
		if rate := perVM(a, a.Total.Bytes); memoryOnly(a) && rate > threadBandwidthMax*float64(max(1, a.Plan.Depth())) && !in.Manifest.Target.Simulated {
			list = append(list, in.About(a.LoadSummary, finding.Warning,
				"Use a version of the program whose compiler does not remove the accesses: sysbench 1.0 or newer.",
				"%s accessed %s/s of memory per VM with %d threads: more than a core executes.", in.Name(a.LoadSummary), unit.FormatBytes(int64(rate)), a.Plan.Depth()))
		}
		for j := range loads[i+1:] {
			b := &loads[i+1+j]
			if !differInBlock(a, b) {
				continue
			}
			first, second := perVM(a, a.Total.Operations), perVM(b, b.Total.Operations)
			advice := "Check that data is written before it is read, that it is not reducible, and that no limit of IOPS applies."
			if memoryOnly(a) {
				advice = "Check that the program accesses the memory that it counts, and that its compiler did not remove the accesses."
			}
			if first == 0 || math.Abs(first-second) > elidedApart*max(first, second) {
				continue
			}
			list = append(list, in.About(a.LoadSummary, finding.Warning, advice,
				"%s and %s reach the same rate (%s and %s "+a.Engine().RateUnit()+" per VM) with blocks of %s and %s: work does not grow with block size.",
				in.Name(a.LoadSummary), in.Name(b.LoadSummary), unit.FormatWhole(uint64(first)), unit.FormatWhole(uint64(second)),
				unit.FormatBytes(a.Plan.Jobs[0].BlockMax), unit.FormatBytes(b.Plan.Jobs[0].BlockMax)))
		}
	}
	return list
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
