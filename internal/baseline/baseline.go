// Package baseline pins runs as what later runs of their scenario are judged against, and says how much worse a later number may be. A
// pin is a name and a hash in the runs folder; a run that is judged has a copy of the pinned numbers in its bundle, so that it is always
// judged the same. It compares no sets of runs: package compare does.
//
//	Set(runs, ids) ──▶ baselines.json ──Of──▶ Baseline: the pinned numbers, attached to a bundle when its run starts
//	Baseline, threshold ──Limits──▶ the values below and above which a later run passes and fails
package baseline

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// Attachment is the name of a Baseline in a bundle.
const Attachment = "baseline.json"

// Baseline is what the pinned runs of a scenario measured.
type Baseline struct {
	// Missing is why there is nothing to judge against, as a clause; "" if there is.
	Missing string `json:"missing,omitempty"`
	Runs    []Run  `json:"runs"`
}

// Run is one pinned run.
type Run struct {
	Run     string    `json:"run"`
	Created time.Time `json:"created"`
	Factors []Factor  `json:"factors"`
	Results []Result  `json:"results"`
}

// Factor is a property that must be the same in a run that is judged.
type Factor struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Result has the statistics of one result of a pinned run.
type Result struct {
	Name  string         `json:"name"`
	Stats []result.Stats `json:"statistics"`
}

// Attached reads the baseline of a bundle.
func Attached(b *result.Bundle) (*Baseline, error) {
	f, err := b.Attachment(Attachment)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	of := &Baseline{}
	if err := json.NewDecoder(f).Decode(of); err != nil {
		return nil, fmt.Errorf("read the baseline of run %q: %w", b.Manifest().Run, err)
	}
	return of, nil
}

// runOf is what a sealed bundle measured.
func runOf(b *result.Bundle) (Run, error) {
	s, err := b.Summary()
	if err != nil {
		return Run{}, err
	}
	m := b.Manifest()
	r := Run{Run: m.Run, Created: m.Created, Factors: FactorsOf(&m, planOf(b)), Results: []Result{}}
	for i := range s.Results {
		e := &s.Results[i]
		if e.Unasked || e.Missing != "" {
			continue
		}
		one := Result{Name: e.Name}
		for _, st := range e.Stats {
			one.Stats = append(one.Stats, result.Stats{Window: st.Window, Series: st.Series, Kind: st.Kind, Count: st.Count, Distribution: st.Distribution})
		}
		r.Results = append(r.Results, one)
	}
	return r, nil
}

// planOf is the plan of a bundle, empty if it cannot be read.
func planOf(b *result.Bundle) *plan.Plan {
	if text, err := b.Plan(); err == nil && len(text) > 0 {
		if p, err := plan.Read(text); err == nil {
			return p
		}
	}
	return &plan.Plan{}
}

// FactorsOf lists what a run must share with its baseline. Versions and the machine of the controller are left out: whether a release is
// worse is what a baseline is for.
func FactorsOf(m *result.Manifest, p *plan.Plan) []Factor {
	list := []Factor{{"scenario", m.Scenario.Name}}
	add := func(name, value string) { list = append(list, Factor{name, value}) }
	for _, name := range slices.Sorted(maps.Keys(m.Scenario.Variables)) {
		add("variable "+name, m.Scenario.Variables[name])
	}
	add("text of the scenario", m.Scenario.Hash[:min(len(m.Scenario.Hash), 12)])
	target := m.Target.Provider + " " + m.Target.Name
	if m.Target.Simulated {
		target += ", simulated"
	}
	add("target", target)
	add("number of nodes", fmt.Sprint(len(m.Target.Nodes)))
	rehearsal := "none"
	if m.Rehearsal != nil {
		rehearsal = fmt.Sprintf("time factor %.4g", m.Rehearsal.TimeFactor)
	}
	add("rehearsal", rehearsal)
	for i := range p.Groups {
		g := &p.Groups[i]
		add("number of VMs of "+g.Name, fmt.Sprint(g.CountFinal))
		add("size of the VMs of "+g.Name, fmt.Sprintf("%s, %s", g.CPUs(), unit.FormatBytes(g.RAMBytes)))
		add("data per VM of "+g.Name, unit.FormatBytes(g.TouchedBytes))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Engines)) {
		e := m.Engines[name]
		add("engine of "+name, strings.TrimSpace(e.Name+" "+strings.Join(e.Backends, " and ")))
	}
	return list
}

// differing lists what differs between the factors of two runs, as clauses.
func differing(then, now []Factor) []string {
	valueOf := func(list []Factor, name string) string {
		if at := slices.IndexFunc(list, func(f Factor) bool { return f.Name == name }); at >= 0 {
			return list[at].Value
		}
		return "not there"
	}
	var list []string
	compare := func(name string) {
		if was, is := valueOf(then, name), valueOf(now, name); was != is {
			list = append(list, fmt.Sprintf("%s is %s and was %s", name, is, was))
		}
	}
	for _, f := range now {
		compare(f.Name)
	}
	for _, f := range then {
		if !slices.ContainsFunc(now, func(o Factor) bool { return o.Name == f.Name }) {
			compare(f.Name)
		}
	}
	return list
}
