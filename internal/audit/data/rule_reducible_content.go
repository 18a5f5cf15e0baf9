package data

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// reducibleWhole is the share from which nearly all of what is written is zeros or repeats.
const reducibleWhole = 0.95

var ReducibleContent = rule.Rule{
	Code:    "reducible-content",
	Summary: "written data compresses or repeats",
	Doc: "Storage that compresses, deduplicates or detects zeros stores less of such data than was written, so that fewer bytes reach " +
		"its disks and more of them fit into its caches. Zeros and one repeated block or pattern nearly vanish (severity warning). A " +
		"share that the job file states on purpose (buffer_compress_percentage, dedupe_percentage) is for information.",
	Example:  `OLTP writes data of which storage with compression or deduplication saves up to 100 % (job "log").`,
	Check:    checkReducibleContent,
	Flatters: true,
}

func checkReducibleContent(in *rule.Input) []finding.Finding {
	return rule.AboutJobs(in, func(j *load.JobPlan) bool { return j.Reducible > 0 }, func(l rule.Load, jobs []load.JobPlan) finding.Finding {
		most := jobs[0].Reducible
		for _, j := range jobs {
			most = max(most, j.Reducible)
		}
		f := in.About(l.LoadSummary, finding.Info, "Compare only with runs of the same content.",
			"%s writes data of which storage with compression or deduplication saves up to %s (%s).", in.Name(l.LoadSummary),
			unit.FormatPercent(most), rule.JobsText(jobs))
		if most >= reducibleWhole {
			f.Severity, f.Advice = finding.Warning,
				"Remove zero_buffers, buffer_pattern and scramble_buffers=0 from the job file, or state the share of real data (buffer_compress_percentage, dedupe_percentage)."
		}
		return f
	})
}
