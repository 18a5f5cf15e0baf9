package data

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

var MemoryDisk = rule.Rule{
	Code:    "memory-disk",
	Summary: "disks of a workload are in memory",
	Doc: "The generator found that a device of the workload is a file on tmpfs or ramfs, or a RAM disk (ram, zram) or null " +
		"device (nullb). No disk is involved: latency and throughput are those of memory copies.",
	Example:  `The disks of OLTP are in memory (tmpfs): no disk was measured.`,
	Check:    checkMemoryDisk,
	Flatters: true,
}

func checkMemoryDisk(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		if found := l.Noted(interval.NoteMemory); len(found) > 0 {
			list = append(list, in.About(l, finding.Warning, "Use a runs folder or devices on a disk.",
				"The disks of %s are in memory (%s): no disk was measured.", in.Name(l), found[0]))
		}
	}
	return list
}
