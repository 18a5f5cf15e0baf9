package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// Measured describes what workloads really did: which engine, which I/O, on how much data, beside what. Facts about the jobs come from
// the plan, all others from the first start of the first of the workloads.
type Measured struct {
	Workloads []string `json:"workloads"` // which do the same
	Facts     []string `json:"facts"`
	own       []string // facts of the first one only
}

// jobsNamed bounds the jobs of a workload that are described one by one, workloadsNamed the workloads that are named.
const (
	jobsNamed      = 3
	workloadsNamed = 3
)

// measured describes the workloads of the run phase: of prefills and of warm-ups in the setup no number is shown.
func measured(d *Document, s *result.Summary, p *plan.Plan) []Measured {
	list, same := []Measured{}, map[string]int{}
	for i := range d.Workloads {
		w := &d.Workloads[i]
		if w.Prefill || w.Operations == 0 || w.Start > 1 || d.beforeRun(w) {
			continue
		}
		facts := []string{engineFact(w)}
		planned := plannedLoad(p, w.Name)
		if planned != nil {
			facts = append(facts, jobFacts(planned.Jobs, len(planned.Extents) > 0)...)
			facts = append(facts, dataFact(w, p, planned), contentFact(planned))
		}
		facts = append(facts, writtenFact(d, w, p, planned))
		key := fmt.Sprint(facts)
		if at, known := same[key]; known {
			list[at].Workloads = append(list[at].Workloads, w.Name)
			continue
		}
		same[key] = len(list)
		own := []string{}
		if planned != nil {
			own = append(own, depthFact(w, s, i, planned))
		}
		blank := func(f string) bool { return f == "" }
		list = append(list, Measured{Workloads: []string{w.Name}, Facts: slices.DeleteFunc(facts, blank),
			own: slices.DeleteFunc(append(own, besideFact(d, w)), blank)})
	}
	for i := range list {
		m := &list[i]
		for _, fact := range m.own {
			if len(m.Workloads) > 1 {
				fact += " (" + m.Workloads[0] + ")"
			}
			m.Facts = append(m.Facts, fact)
		}
	}
	return list
}

// beforeRun reports whether a load ended before the run phase began.
func (d *Document) beforeRun(w *Workload) bool {
	for _, p := range d.Phases {
		if p.Name == string(plan.Run) {
			return w.ToNanos <= p.FromNanos
		}
	}
	return false
}

// Title names the workloads.
func (m *Measured) Title() string { return textio.Few(m.Workloads, workloadsNamed) }

func plannedLoad(p *plan.Plan, name string) *load.Plan {
	for i := range p.Workloads {
		if p.Workloads[i].Name == name {
			return p.Workloads[i].Load
		}
	}
	return nil
}

func engineFact(w *Workload) string {
	if text := w.EngineText(); text != "" {
		return "engine " + text
	}
	return "engine unknown"
}

// jobFacts describes jobs: "randrw 8k, direct, queue depth 16, 1,650 IOPS requested". Equal jobs are counted.
// What is not on disks of VMs, as on an endpoint, is reached in a way that only its owner knows.
func jobFacts(jobs []load.JobPlan, onDisks bool) []string {
	var texts []string
	count := map[string]int{}
	for _, j := range jobs {
		text := strings.TrimSpace(j.Pattern + " " + j.BlockSizes)
		if j.Direct {
			text += ", direct"
		} else if (j.Reads || j.Writes) && onDisks {
			text += ", through the page cache"
		}
		if j.QueueDepth > 0 {
			text += fmt.Sprintf(", queue depth %d", j.QueueDepth)
		}
		if j.RateIOPS > 0 {
			rate := "IOPS"
			if j.BlockSizes == "" {
				rate = "operations/s" // of a load without I/O of its own
			}
			text += fmt.Sprintf(", %s %s requested", unit.FormatCount(j.RateIOPS/float64(max(1, j.Clones))), rate)
		}
		if count[text] == 0 {
			texts = append(texts, text)
		}
		count[text] += max(1, j.Clones)
	}
	more := len(texts) - jobsNamed
	if more > 0 {
		texts = texts[:jobsNamed]
	}
	for i, text := range texts {
		if n := count[text]; n > 1 {
			texts[i] = fmt.Sprintf("%d jobs of %s each", n, text)
		}
	}
	if more > 0 {
		text := "1 more kind of job"
		if more > 1 {
			text = fmt.Sprintf("%d more kinds of jobs", more)
		}
		texts = append(texts, text)
	}
	return texts
}

// depthFact is the mean number of operations in flight on a VM: by Little's law, their service times by the time of the load. It is
// unknown if VMs were away for some of that time.
func depthFact(w *Workload, s *result.Summary, at int, planned *load.Plan) string {
	l := &s.Loads[at]
	for i := range s.Impacts {
		if slices.ContainsFunc(s.Impacts[i].Loads, func(l result.ImpactLoad) bool { return l.Workload == w.Name && l.TakenAway != nil }) {
			return ""
		}
	}
	asked, pauses := 0, false
	for _, j := range planned.Jobs {
		if !j.Shares {
			asked += max(1, j.QueueDepth) * max(1, j.Clones)
		}
		pauses = pauses || j.Pauses
	}
	spent := 0.0
	for i := range l.Directions {
		if h := l.Directions[i].Service; h != nil {
			spent += h.Sum()
		}
	}
	length := float64(l.ToNanos-l.FromNanos) * float64(max(1, w.VMs))
	if spent == 0 || length < float64(time.Second) {
		return ""
	}
	if pauses { // so that the jobs do not have their depths at the same time
		return fmt.Sprintf("%s operations in flight per VM on average", draw.Amount(spent/length, ""))
	}
	return fmt.Sprintf("%s of %d operations in flight per VM on average", draw.Amount(spent/length, ""), asked)
}

// dataFact is the data that the workload touches, against the memory that could cache it.
func dataFact(w *Workload, p *plan.Plan, planned *load.Plan) string {
	bytes := int64(0)
	for _, e := range planned.Extents {
		bytes += e.Length
	}
	if bytes -= planned.LogBytes; bytes <= 0 {
		return ""
	}
	text, vms := unit.FormatBytes(bytes)+" of data", w.VMs
	of, _ := p.Workload(w.Name)
	group := cmp.Or(of.DataGroup(), w.Group)
	if servers, known := p.Group(group); known && group != w.Group {
		text, vms = text+" on "+group, servers.Count
	}
	if vms > 1 {
		text += fmt.Sprintf(" per VM, %s together", unit.FormatBytes(bytes*int64(vms)))
	}
	for _, g := range p.Groups {
		if g.Name == group && g.RAMBytes > 0 {
			text += fmt.Sprintf(" (memory per VM: %s)", unit.FormatBytes(g.RAMBytes))
		}
	}
	return text
}

// contentFact repeats the plan's note on what is written, which begins with the names of jobs.
func contentFact(planned *load.Plan) string {
	for _, note := range planned.Notes {
		if _, text, found := strings.Cut(note, ": writes "); found && strings.HasPrefix(note, "job") {
			return "writes " + text
		}
	}
	return ""
}

// dataless reports whether a load has nothing that a prefill could write, as that of a CPU or a network.
func dataless(p *load.Plan) bool {
	return p.Computes || p.Program != nil && len(p.Program.Data) == 0 && len(p.Extents) == 0
}

// writtenFact says how much of the data the prefills of this run wrote before the load: first writes to new space, and reads of space
// that was never written, are not what a system in use does. The prefill of one workload may write what another one of its group uses.
func writtenFact(d *Document, w *Workload, p *plan.Plan, planned *load.Plan) string {
	if planned != nil && planned.OwnData {
		return "writes the data that it reads itself"
	}
	var ranges []extent.Extent
	by, broken := []string{}, false
	self, _ := p.Workload(w.Name)
	group := cmp.Or(self.DataGroup(), w.Group)
	for i := range d.Workloads {
		before := &d.Workloads[i]
		of, _ := p.Workload(before.Name)
		if !before.Prefill || before.Group != group || before.ToNanos > w.FromNanos || before.Operations == 0 && (of.Prefill == nil || of.Prefill.Program == nil) {
			continue
		}
		if of.Prefill == nil { // an older plan, without ranges
			if before.Name == w.Name && !broken {
				by, broken = append(by, before.Name), before.ErrorCount > 0 || before.Error != ""
			}
			continue
		}
		elsewhere := planned != nil && len(planned.Extents) == 0 && len(of.Prefill.Extents) == 0 // not on disks of the VM
		used := planned == nil || extent.Common(planned.Extents, of.Prefill.Extents) > 0 || elsewhere && (before.Name == w.Name || sameData(planned, of.Prefill))
		if used {
			ranges, by = append(ranges, of.Prefill.Extents...), append(by, before.Name)
			asked := uint64(extent.Bytes(of.Prefill.Extents)) * uint64(max(1, before.VMs))
			broken = broken || before.ErrorCount > 0 || before.Error != "" || of.Prefill.Program == nil && float64(before.Bytes) < (1-prefillRest)*float64(asked)
		}
	}
	switch {
	case len(by) == 0 && planned != nil && dataless(planned):
		return ""
	case len(by) == 0:
		return "no prefill of this data in this run"
	case broken:
		return "the prefill before it is incomplete"
	}
	text := "written by a prefill before"
	if planned != nil && len(ranges) > 0 {
		all := extent.Bytes(planned.Extents)
		if known := extent.Common(planned.Extents, extent.Merge(ranges)); float64(known) < (1-prefillRest)*float64(all) {
			text = fmt.Sprintf("%s of %s %s", unit.FormatBytes(known), unit.FormatBytes(all), text)
		}
	}
	if !slices.Contains(by, w.Name) {
		text += " (that of " + textio.Few(by, workloadsNamed) + ")"
	}
	return text
}

// sameData reports whether programs say that they store the same, as on one endpoint.
func sameData(a, b *load.Plan) bool {
	return a.Program != nil && b.Program != nil && slices.ContainsFunc(a.Program.Data, func(text string) bool { return slices.Contains(b.Program.Data, text) })
}

// prefillRest is the share of its data that a prefill may leave out: the last blocks of devices whose size is odd.
const prefillRest = 0.01

// besideFact names the workloads that ran at the same time.
func besideFact(d *Document, w *Workload) string {
	var names []string
	for i := range d.Workloads {
		other := &d.Workloads[i]
		both := min(other.ToNanos, w.ToNanos) - max(other.FromNanos, w.FromNanos)
		if i := other.Title(); both > int64(time.Second) && i != w.Title() {
			names = append(names, fmt.Sprintf("%s for %s", i, draw.Duration(both)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "beside " + textio.Few(names, workloadsNamed)
}
