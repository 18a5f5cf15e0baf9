package vdbench

import (
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
)

// checkedBytes is the size of disks that are not known: larger than any.
const checkedBytes = 1 << 60

// Checked is what can be said of a parameter file without a VM.
type Checked struct {
	Runs   []string // names, as vdbench prints them
	Issues diag.List
}

// Check reads a parameter file by itself. The disks are those that it names, and as large as it needs.
func Check(name, text string, variables map[string]string) Checked {
	file := parmfile.Parse(name, text, variables)
	if file.Issues.HasErrors() {
		return Checked{Issues: withoutEchoes(file.Issues.Sorted())}
	}
	b := builder{File: file, workload: &load.Workload{Name: name}, rates: 1, anyDisk: true}
	var c Checked
	if hasFiles(file) {
		for _, r := range b.filesOf().runs {
			c.Runs = append(c.Runs, r.name)
		}
	} else {
		for _, r := range b.runs() {
			c.Runs = append(c.Runs, r.name)
		}
	}
	if len(c.Runs) == 0 && !file.Issues.HasErrors() {
		file.Issues.Errorf(diag.Position{File: name}, "no-run", "the parameter file has no rd=")
	}
	if c.Issues = slices.Compact(file.Issues.Sorted()); c.Issues.HasErrors() {
		c.Runs = nil
	}
	return c
}

// UnsetVariable is the code of an issue about a variable without a value.
const UnsetVariable = parmfile.UnsetVariable

// withoutEchoes leaves out what only follows from variables without a value, if there are any.
func withoutEchoes(all diag.List) diag.List {
	if !slices.ContainsFunc(all, func(d diag.Diagnostic) bool { return d.Code == UnsetVariable }) {
		return all
	}
	return slices.DeleteFunc(all, func(d diag.Diagnostic) bool { return d.Code != UnsetVariable && d.Code != "unused-variable" })
}
