package data

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

var SmallDataSet = rule.Rule{
	Code:    "small-data-set",
	Summary: "the data set of a benchmark is smaller than its rule demands",
	Doc: "A benchmark that reads through the page cache states how large its data set must be for reads to reach the storage: MLPerf " +
		"Storage five times the memory of all hosts, and 500 steps per epoch. The generator compares the data set with the memory of its " +
		"machine. With less, memory serves a part of the reads from the second epoch on, and utilization is too high.",
	Example: `Train: the data set has 20 GiB, and the rule of MLPerf Storage is at least 120 GiB (5 times the 24 GiB of memory of this machine): memory may serve its reads.`,
	Check: func(in *rule.Input) []finding.Finding {
		return noted(in, interval.NoteSmallData, "Use a larger data set, such as that of the option host_memory, or VMs with less memory.")
	},
	Flatters: true,
}
