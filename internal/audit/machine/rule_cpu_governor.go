package machine

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
)

var CPUGovernor = rule.Rule{
	Code:    "cpu-governor",
	Summary: "the CPU governor saves power",
	Doc: "The governor lowers the clock of CPUs that are not busy. A load that waits for I/O leaves CPUs idle, so that each " +
		"completion is handled at a low clock: latencies of less than 100 µs and the throughput of a single thread vary with " +
		"the history of the machine.",
	Example: `The CPU governor of this machine was powersave: short latencies vary with its clock.`,
	Check:   checkCpuGovernor,
}

func checkCpuGovernor(in *rule.Input) []finding.Finding {
	governor := in.Manifest.Environment["cpu governor"]
	if governor == "" || governor == "performance" || !onThisMachine(in) {
		return nil
	}
	return []finding.Finding{{Severity: finding.Info,
		Claim:  fmt.Sprintf("The CPU governor of this machine was %s: short latencies vary with its clock.", governor),
		Advice: "Set the governor performance (cpupower frequency-set -g performance)."}}
}
