package audit

import (
	"slices"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

var noIO = rule.Rule{
	Code:    "no-io",
	Summary: "a workload did no I/O",
	Doc: "The null engine completes operations without doing them. Its numbers are the limit of the generator on this machine, " +
		"and say nothing about storage.",
	Example:  `OLTP ran with the null engine: no I/O was done.`,
	Check:    checkNoIO,
	Flatters: true,
}

func checkNoIO(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		if slices.ContainsFunc(l.Engines, null) && !in.Manifest.Target.Simulated {
			list = append(list, in.About(l, finding.Undecided,
				"Remove ioengine=null from the job file and backend=null from the options of the workload.",
				"%s ran with the null engine: no I/O was done.", in.Name(l)))
		}
	}
	return list
}

// null reports whether an engine completes operations without doing them.
func null(e interval.Engine) bool { return slices.Contains(e.Backends, "null") }
