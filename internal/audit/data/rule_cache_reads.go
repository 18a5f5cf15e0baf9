package data

import (
	"fmt"

	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/unit"
)

// unwrittenNoticed is the smallest share of unwritten data in a workload's range that is reported.
const unwrittenNoticed = 0.05

var CacheReads = rule.Rule{
	Code:    "cache-suspected",
	Summary: "reads may not have reached a disk",
	Doc: "The rule checks four causes. Reads of ranges that no prefill or workload of the plan wrote: thin storage returns zeros from " +
		"its metadata. Holes and unwritten extents that the generator found on a file or loop device; on other block devices (a " +
		"discarded SSD, a thin volume) they cannot be detected. Buffered I/O (direct=0) on a working set smaller than memory: the " +
		"page cache of the VM serves it. Jobs with invalidate=0 or pre_read=1. All of them give numbers that no disk can reach.",
	Example:  `randread reads 4 GiB of unwritten data per VM: thin storage serves it without disk I/O.`,
	Check:    checkCacheReads,
	Flatters: true,
}

func checkCacheReads(in *rule.Input) []finding.Finding {
	p := in.KnownPlan()
	var list []finding.Finding
	planned := map[string]int{} // workload → its finding about data that the run did not write
	for _, w := range p.Workloads {
		if w.Load == nil || !w.Load.Reads() || begins(in, w.Name) < 0 {
			continue
		}
		unwritten, all := extent.Bytes(extent.Without(w.Load.Extents, writtenBefore(in, w, begins(in, w.Name), ""))), extent.Bytes(w.Load.Extents)
		if all > 0 && float64(unwritten) >= unwrittenNoticed*float64(all) {
			planned[w.Name] = len(list)
			list = append(list, finding.Finding{Severity: finding.Warning, Subject: w.Name,
				Claim: fmt.Sprintf("%s reads %s of unwritten data per VM: thin storage serves it without disk I/O.",
					w.Name, unit.FormatBytes(unwritten)),
				Evidence: []string{fmt.Sprintf("range read: %s", unit.FormatBytes(all))},
				Advice:   "Add workload.PrefillRun for this workload to the setup phase.",
			})
		}
		if f, ok := buffered(p, w, all-w.Load.LogBytes); ok {
			list = append(list, f)
		}
	}
	for _, f := range holes(in) {
		if at, known := planned[f.Subject]; known { // the same data
			list[at].Evidence = append(list[at].Evidence, f.Evidence...)
			continue
		}
		list = append(list, f)
	}
	return append(list, cached(in)...)
}

// cached reports jobs whose options keep their data in the page cache.
func cached(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		for _, why := range l.Noted(interval.NoteCached) {
			list = append(list, in.About(l, finding.Warning, "Remove invalidate=0 and pre_read=1, or set direct=1.",
				"%s keeps its data in the page cache: %s.", in.Name(l), why))
		}
	}
	return list
}

// holes reports unwritten ranges that generators found on the disks.
func holes(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		found := l.Noted(interval.NoteUnwritten)
		if len(found) == 0 {
			continue
		}
		list = append(list, finding.Finding{Severity: finding.Warning, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos,
			Claim:    fmt.Sprintf("%s reads unwritten data: %s. Such reads need no disk I/O.", in.Name(l), found[0]),
			Evidence: found, Advice: "Add workload.PrefillRun for this workload to the setup phase."})
	}
	return list
}

// writtenBefore collects what prefills of the group wrote, and loads, except one, that began until a given time. A load that also
// writes its own range counts as written when it begins.
func writtenBefore(in *rule.Input, reader plan.Workload, begin int64, except string) []extent.Extent {
	var list []extent.Extent
	for _, w := range in.KnownPlan().Workloads {
		if w.DataGroup() != reader.DataGroup() {
			continue
		}
		for _, l := range in.Summary.Loads {
			if l.Workload != w.Name || l.FromNanos > begin {
				continue
			}
			part := w.Load
			if l.Prefill {
				part = w.Prefill
			}
			if part == nil || w.Name == except && !l.Prefill {
				continue
			}
			for _, e := range part.Extents {
				if e.Writes {
					list = append(list, e)
				}
			}
		}
	}
	return list
}

func buffered(p *plan.Plan, w plan.Workload, touched int64) (finding.Finding, bool) {
	if w.Load.Direct() {
		return finding.Finding{}, false
	}
	for _, g := range p.Groups {
		if g.Name != w.DataGroup() || g.RAMBytes == 0 || touched == 0 || touched >= g.RAMBytes {
			continue
		}
		return finding.Finding{Severity: finding.Warning, Subject: w.Name,
			Claim: fmt.Sprintf("%s uses buffered I/O on %s in VMs with %s of memory: reads may come from the page cache.", w.Name,
				unit.FormatBytes(touched), unit.FormatBytes(g.RAMBytes)),
			Advice: "Set direct=1 in the job file, or use a working set larger than memory.",
		}, true
	}
	return finding.Finding{}, false
}

// begins returns when the first measured start of a workload began, or -1.
func begins(in *rule.Input, workload string) int64 {
	for _, l := range rule.Measured(in) {
		if l.Workload == workload {
			return l.FromNanos
		}
	}
	return -1
}
