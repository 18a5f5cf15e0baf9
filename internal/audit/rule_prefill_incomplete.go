package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// prefillMissed is the share of its range that a prefill may leave out: the last blocks of devices whose size is odd.
const prefillMissed = 0.01

var prefillIncomplete = Rule{
	Code:    "prefill-incomplete",
	Summary: "a prefill wrote less than the range of its workload",
	Doc: "A prefill writes all ranges that its workload uses. This one wrote less: it failed, was stopped, or lost its VM. The " +
		"rest is still empty, and thin storage answers reads of it without disk I/O.",
	Example: `The prefill of OLTP wrote 2.1 GiB of 4 GiB per VM: reads of the rest need no disk.`,
	Check:   checkPrefillIncomplete,
}

func checkPrefillIncomplete(in *Input) []finding.Finding {
	var list []finding.Finding
	wrote, last := map[string]int64{}, map[string]*result.LoadSummary{}
	for i := range in.Summary.Loads {
		if l := &in.Summary.Loads[i]; l.Prefill {
			wrote[l.Workload] += int64(l.Total.Bytes) / int64(max(1, l.VMs))
			last[l.Workload] = l
		}
	}
	for _, w := range in.plan().Workloads {
		if w.Prefill == nil || wrote[w.Name] == 0 {
			continue
		}
		all := extent.Bytes(w.Prefill.Extents)
		if float64(wrote[w.Name]) >= (1-prefillMissed)*float64(all) {
			continue
		}
		list = append(list, finding.Finding{Severity: finding.Warning, Subject: w.Name, FromNanos: last[w.Name].FromNanos,
			ToNanos: last[w.Name].ToNanos,
			Claim: fmt.Sprintf("The prefill of %s wrote %s of %s per VM: reads of the rest need no disk.", w.Name,
				unit.FormatBytes(wrote[w.Name]), unit.FormatBytes(all)),
			Advice: "Repeat the run, and check the errors of its setup phase.",
		})
	}
	return list
}
