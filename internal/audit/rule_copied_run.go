package audit

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
)

var copiedRun = rule.Rule{
	Code:    "copied-run",
	Summary: "two runs have identical raw samples",
	Doc: "Latencies in nanoseconds never repeat second by second. Two runs with the same samples are one run: a bundle was " +
		"copied, or a recording was played back. A comparison of the two has no second measurement. bragg compare checks it.",
	Example: `The raw samples of OLTP are those of run 20260102-101500-abcdef: one of the two is a copy.`,
	Check:   checkCopiedRun,
}

func checkCopiedRun(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		for _, o := range in.Others {
			for i := range o.Loads {
				if l.Fingerprint == "" || o.Loads[i].Fingerprint != l.Fingerprint || in.Manifest.Target.Simulated {
					continue
				}
				list = append(list, in.About(l, finding.Undecided, "Compare with another run.",
					"The raw samples of %s are those of run %s: one of the two is a copy.", in.Name(l), o.Run))
			}
		}
	}
	return list
}

// AgainstOthers checks a run against others that it is compared with.
func AgainstOthers(in rule.Input) []finding.Finding {
	list := copiedRun.Check(&in)
	for i := range list {
		list[i].Code = copiedRun.Code
	}
	return list
}
