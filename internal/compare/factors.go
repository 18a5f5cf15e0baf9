package compare

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// factors lists the known properties that differ between the runs, the most relevant first.
func factors(documents []*document.Document) []Factor {
	list := []Factor{}
	add := func(name string, get func(*document.Document) string) {
		f := Factor{Name: name}
		for _, d := range documents {
			f.Values = append(f.Values, get(d))
		}
		if len(slices.Compact(slices.Clone(f.Values))) > 1 {
			list = append(list, f)
		}
	}
	addMaps := func(prefix string, get func(*document.Document) map[string]string) {
		names := map[string]bool{}
		for _, d := range documents {
			for name := range get(d) {
				names[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			add(prefix+name, func(d *document.Document) string { return get(d)[name] })
		}
	}
	add("label", func(d *document.Document) string { return d.Label })
	add("scenario", func(d *document.Document) string { return d.Scenario.Name })
	add("scenario hash", func(d *document.Document) string { return shortHash(d.Scenario.Hash) })
	add("preset", func(d *document.Document) string { return d.Scenario.Preset })
	addMaps("variable ", func(d *document.Document) map[string]string { return d.Scenario.Variables })
	add("target", func(d *document.Document) string { return document.TargetLine(d) })
	addMaps("target fact ", targetFacts)
	addMaps("engine of ", engineTexts)
	addMaps("version of ", func(d *document.Document) map[string]string { return d.Versions })
	addMaps("", func(d *document.Document) map[string]string { return d.Environment })
	addMaps("rehearsal: ", rehearsalFactors)
	add("seed", func(d *document.Document) string { return strconv.FormatUint(d.Seed, 10) })
	return list
}

func engineTexts(d *document.Document) map[string]string {
	texts := map[string]string{}
	for workload, e := range d.Engines {
		texts[workload] = e.String()
	}
	return texts
}

func targetFacts(d *document.Document) map[string]string {
	facts := map[string]string{}
	for _, f := range d.Target.Facts {
		facts[f[0]] = f[1]
	}
	return facts
}

func rehearsalFactors(d *document.Document) map[string]string {
	if d.Rehearsal == nil {
		return nil
	}
	list := map[string]string{"time factor": document.Factor(d.Rehearsal.TimeFactor)}
	if n := d.Rehearsal.Nodes; n[0] != n[1] {
		list["nodes"] = fmt.Sprintf("%d of %d", n[1], n[0])
	}
	for group, f := range d.Rehearsal.SizeFactor {
		list["size factor of "+group] = document.Factor(f)
	}
	for group, c := range d.Rehearsal.Counts {
		list["VMs of "+group] = fmt.Sprintf("%d of %d", c[1], c[0])
	}
	for group, c := range d.Rehearsal.VCPUs {
		list["vCPUs of "+group] = fmt.Sprintf("%d of %d", c[1], c[0])
	}
	for group, c := range d.Rehearsal.RAMBytes {
		list["memory of "+group] = unit.FormatBytes(c[1]) + " of " + unit.FormatBytes(c[0])
	}
	return list
}

// shortHash is a prefix of a hash, long enough to distinguish two.
func shortHash(hash string) string { return hash[:min(len(hash), 12)] }

// comparisonWarnings lists what makes the runs hard to compare.
func comparisonWarnings(documents []*document.Document, names []string) []string {
	list := []string{}
	first := documents[0]
	warned := map[string]bool{}
	warn := func(text string) {
		if !warned[text] {
			warned[text] = true
			list = append(list, text)
		}
	}
	for i, d := range documents {
		name := names[i]
		switch {
		case d.Scenario.Name != first.Scenario.Name:
			warn(fmt.Sprintf("The runs have different scenarios (%s and %s).",
				first.Scenario.Name, d.Scenario.Name))
		case d.Scenario.Hash != first.Scenario.Hash:
			warn("The scenario differs in its text or its variables.")
		}
		if d.Target.Simulated != first.Target.Simulated {
			warn("Comparison of a simulated target with a real one: ratios are meaningless.")
		}
		if a, b := rehearsalFactors(first), rehearsalFactors(d); fmt.Sprint(a) != fmt.Sprint(b) {
			warn("The rehearsals have different scale factors.")
		}
		if d.Verdict == result.Failed || d.Verdict == result.Undecided {
			warn(fmt.Sprintf("Run %s ended as %s: %s", name, d.Verdict, strings.TrimSpace(d.Reason)))
		}
		for _, caveat := range d.Caveats {
			warn(fmt.Sprintf("Run %s: %s", name, caveat))
		}
	}
	return list
}
