// Package machine has the rules of the audit on the machines that drive loads: what else ran there, and what they were short of.
//
//	environment, samples of the machine, intervals ──Rule.Check──▶ findings
//
// audit.Rules lists them among all others.
package machine

import "github.com/braggdev/bragg/internal/audit/rule"

// Rules are those on the machine of the generator, in the order of the guide.
func Rules() []rule.Rule {
	return []rule.Rule{GeneratorOnTarget, ClientsBesideServer, Busy, NumaImbalance, CPUGovernor}
}
