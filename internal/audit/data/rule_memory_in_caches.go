package data

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

var MemoryInCaches = rule.Rule{
	Code:    "memory-in-caches",
	Summary: "a benchmark of memory used so little of it that caches may hold it",
	Doc: "STREAM demands arrays of at least four times all last-level caches, and a walk through memory needs a largest working set beyond " +
		"them as well. With less, the numbers are those of a cache in part, which has several times the bandwidth of memory.",
	Example: `stream: arrays of 32 MiB are less than 4 times the last-level cache of 33 MiB.`,
	Check: func(in *rule.Input) []finding.Finding {
		return noted(in, interval.NoteInCaches, "Leave the option array or sizes out: the generator then derives it from the caches of the VM.")
	},
	Flatters: true,
}
