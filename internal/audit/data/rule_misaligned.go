package data

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// alignmentBytes is the page of flash translation layers, file systems and 4 KiB-sector disks; a smaller unit of a disk is emulated.
const alignmentBytes = 4096

var Misaligned = rule.Rule{
	Code:    "misaligned",
	Summary: "operations are not aligned to 4 KiB",
	Doc: "Disks, file systems and storage systems work in units of 4 KiB or more. An operation that begins or ends inside a " +
		"unit makes two operations of one, and a write has to read the rest of the unit first. Latency and throughput are then " +
		"those of this repair. Jobs whose blocks are all smaller than 4 KiB are not reported.",
	Example: `OLTP: offsets and sizes of job "log" are multiples of 512 B, not of 4 KiB.`,
	Check:   checkMisaligned,
}

func checkMisaligned(in *rule.Input) []finding.Finding {
	return rule.AboutJobs(in, func(j *load.JobPlan) bool {
		return j.AlignBytes > 0 && j.AlignBytes < alignmentBytes && j.BlockMax >= alignmentBytes
	}, func(l rule.Load, jobs []load.JobPlan) finding.Finding {
		return in.About(l.LoadSummary, finding.Warning, "Use block sizes, offset and blockalign that are multiples of 4 KiB.",
			"%s: offsets and sizes of %s are multiples of %s, not of %s.", in.Name(l.LoadSummary), rule.JobsText(jobs),
			unit.FormatBytes(jobs[0].AlignBytes), unit.FormatBytes(alignmentBytes))
	})
}
