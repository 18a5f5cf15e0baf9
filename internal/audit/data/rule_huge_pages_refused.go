package data

import (
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
)

var HugePagesRefused = rule.Rule{
	Code:    "huge-pages-refused",
	Summary: "a database server asked for huge pages and got small ones",
	Doc: "PostgreSQL with huge_pages=try starts with small pages, and says nothing, when the kernel has too few huge pages for all of its " +
		"shared memory. The run then measures a configuration that the scenario does not name: every access to a large buffer pool costs " +
		"more translations of addresses.",
	Example: `oltp: huge_pages=try, and the system had none to give.`,
	Check: func(in *rule.Input) []finding.Finding {
		return noted(in, interval.NoteSmallPages, "Raise vm.nr_hugepages in the VM above shared_buffers, or set huge_pages to \"on\" so that the server does not start without.")
	},
}
