package lint

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/scenario"
)

var ruleMissingDisk = Rule{
	Code:     "missing-disk",
	Severity: finding.Fail,
	Summary:  "A job file uses a device that the VMs of its group do not have.",
	Doc: "The data disks of a group are /dev/sdb, /dev/sdc and so on, as many as data_disks says. A plan refuses a workload with " +
		"other devices.",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		for _, w := range f.Scenario.Workloads {
			g, ok := f.Scenario.Group(w.Group)
			if _, readable := f.Jobs(w); !ok || !readable {
				continue
			}
			for _, d := range f.files[w.ConfigFile].file.Undeclared(devices(g)) {
				out = append(out, finding.Finding{Subject: w.Name, Pos: &d.Pos,
					Claim: fmt.Sprintf("Workload %q: %s.", w.Name, d.Message), Advice: d.Hint})
			}
		}
		return out
	},
}

// devices lists the data disks of a group by their names in job files: sdb is the first.
func devices(g scenario.Group) []string {
	var out []string
	for i := range g.DiskCount {
		name := ""
		for n := i + 1; ; n = n/26 - 1 { // sda … sdz, sdaa …
			name = string(rune('a'+n%26)) + name
			if n < 26 {
				break
			}
		}
		out = append(out, "/dev/sd"+name)
	}
	return out
}
