package data

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// sharedNanos is the shortest common time that is reported: one interval belongs to the border between two loads.
const sharedNanos = int64(2e9)

var DiskShared = rule.Rule{
	Code:    "disk-shared",
	Summary: "two workloads used the same disk at the same time",
	Doc: "Two workloads of a VM group ran at the same time on the same devices of its VMs. The disk served both: latency of " +
		"each contains the queue of the other, and a sequential load turns into a random one. That is a result only if the mix " +
		"is what you want to measure.",
	Example: `OLTP and Backup used the same devices (/dev/sdb) of the same VMs from 1:10 to 3:40.`,
	Check:   checkDiskShared,
}

func checkDiskShared(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	loads := rule.Measured(in)
	for i, a := range loads {
		for _, b := range loads[i+1:] {
			from, to := max(a.FromNanos, b.FromNanos), min(a.ToNanos, b.ToNanos)
			devices := commonDevices(in, a, b)
			if to-from < sharedNanos || len(devices) == 0 {
				continue
			}
			list = append(list, finding.Finding{Severity: finding.Warning, Subject: a.Workload, FromNanos: from, ToNanos: to,
				Claim: fmt.Sprintf("%s and %s used the same devices (%s) of the same VMs from %s to %s.", in.Name(a), in.Name(b),
					strings.Join(devices, ", "), unit.FormatClock(from), unit.FormatClock(to)),
				Advice: "Give each workload its own disk, or run them one after the other.",
			})
		}
	}
	return list
}

// commonDevices names the devices of the same VMs that two loads use, as VMs name them.
func commonDevices(in *rule.Input, a, b *result.LoadSummary) []string {
	first, _ := in.KnownPlan().Workload(a.Workload)
	second, _ := in.KnownPlan().Workload(b.Workload)
	if first.Load == nil || second.Load == nil || first.DataGroup() != second.DataGroup() {
		return nil
	}
	other, both := extent.PerDevice(second.Load.Extents), extent.PerDevice(first.Load.Extents)
	maps.DeleteFunc(both, func(device string, _ int64) bool { return other[device] == 0 })
	return slices.Sorted(maps.Keys(both))
}
