package data

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
)

// Caches of disks: a hard disk has 64 to 512 MiB, and the caches of processors and controllers hold 32 MiB at least.
const (
	workingSetTiny  = 32 << 20
	workingSetSmall = 256 << 20
)

var TinyWorkingSet = rule.Rule{
	Code:    "tiny-working-set",
	Summary: "a workload uses so little data that a cache of the disk holds it",
	Doc: "The rule takes the device of which a workload uses most, per VM. Below 32 MiB the data fits into caches of any processor, " +
		"controller or disk (severity warning), below 256 MiB into those of most hard disks and RAID controllers (info). Reads are " +
		"then served from memory, and writes are merged there. Rehearsals, which shrink data on purpose, and servers that keep their data " +
		"in memory on purpose (Redis) are not checked.",
	Example:  `OLTP uses only 16 MiB per disk: a cache of the disk or the controller holds it.`,
	Check:    checkTinyWorkingSet,
	Flatters: true,
}

func checkTinyWorkingSet(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Planned(in) {
		var most int64
		for _, bytes := range extent.PerDevice(l.Plan.Extents) {
			most = max(most, bytes)
		}
		if most == 0 || most >= workingSetSmall || in.Manifest.Rehearsal != nil || l.Plan.InMemory {
			continue
		}
		f := in.About(l.LoadSummary, finding.Info,
			"Use several times the size of all caches (size= in the job file), unless a cache is what you measure.",
			"%s uses only %s per disk: a cache of the disk or the controller holds it.", in.Name(l.LoadSummary), unit.FormatBytes(most))
		if most < workingSetTiny {
			f.Severity = finding.Warning
		}
		list = append(list, f)
	}
	return list
}
