// Package machine has the rules of the audit on the machines that drive loads: what else ran there, and what they were short of.
//
//	environment, samples of the machine, intervals ──Rule.Check──▶ findings
//
// It has no list of its own: audit.Rules lists all.
package machine
