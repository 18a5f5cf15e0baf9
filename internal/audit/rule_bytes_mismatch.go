package audit

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
)

// bytesTolerance: counts and bytes are exact, but operations at the borders of a fallen generator may miss in one of them.
const bytesTolerance = 0.01

var bytesMismatch = rule.Rule{
	Code:    "bytes-mismatch",
	Summary: "operations and bytes of a workload do not fit its block sizes",
	Doc: "The mean size of all operations of a workload lies between its smallest and its largest block. If it does not, " +
		"operations were counted without their data, transfers were cut short, or units were mixed up. IOPS and bandwidth " +
		"contradict each other, and one of them is wrong.",
	Example: `OLTP moved 2.1 KiB per operation, but its blocks have 8 KiB at least and 64 KiB at most.`,
	Check:   checkBytesMismatch,
}

func checkBytesMismatch(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Planned(in) {
		var smallest, largest int64
		for i, j := range l.Plan.Jobs {
			if i == 0 || j.BlockMin < smallest {
				smallest = j.BlockMin
			}
			largest = max(largest, j.BlockMax)
		}
		if smallest == 0 || l.Total.Operations == 0 || !l.Engine().DoesIO() {
			continue
		}
		mean := float64(l.Total.Bytes) / float64(l.Total.Operations)
		if mean >= (1-bytesTolerance)*float64(smallest) && mean <= (1+bytesTolerance)*float64(largest) {
			continue
		}
		list = append(list, in.About(l.LoadSummary, finding.Undecided, "Do not use these numbers. Report it, with the bundle.",
			"%s moved %s per operation, but its blocks have %s at least and %s at most.", in.Name(l.LoadSummary), unit.FormatBytes(int64(mean)),
			unit.FormatBytes(smallest), unit.FormatBytes(largest)))
	}
	return list
}
