package data

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

var ScaleBelowClients = rule.Rule{
	Code:    "scale-below-clients",
	Summary: "clients of pgbench wait for each other's rows",
	Doc: "Each transaction of TPC-B updates one row of pgbench_branches, and the table has as many rows as the scale. With more clients " +
		"than rows, transactions wait for the lock of a row while the disks are idle. The rate is then lower than the server's.",
	Example: `oltp: 32 clients update 10 rows of pgbench_branches and wait for each other's locks.`,
	Check: func(in *rule.Input) []finding.Finding {
		return noted(in, interval.NoteContended, "Set the scale to at least the number of clients, or use simple-update or select-only.")
	},
}
