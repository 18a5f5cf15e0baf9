package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/baseline"
	"github.com/braggdev/bragg/internal/collect/builtin"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// manifest describes the run: all constant data that a report needs.
func (p *Prepared) manifest(zero time.Time, s *secrets) result.Manifest {
	m := result.Manifest{
		Run: p.ID, Label: p.Order.Label, Created: zero.UTC(), Scenario: scenarioInfo(s.scenario(p.Scenario)),
		Target: targetInfo(p.Inventory, &p.Plan.Plan, &p.config), Rehearsal: p.Plan.Rehearsal,
		Versions: map[string]string{
			"bragg": cmp.Or(p.Order.Program.Version, "unknown"), "go": runtime.Version(), "kernel": Kernel(),
		},
		Environment: Environment(p.Order.Runs), Engines: engines(&p.Plan.Plan),
		Seed: p.Plan.Seed,
	}
	for _, word := range p.Order.Program.CommandLine {
		m.CommandLine = append(m.CommandLine, s.text(word))
	}
	for _, engine := range m.Engines {
		if engine.Version != "" {
			m.Versions[engine.Name] = engine.Version
		}
	}
	return m
}

func scenarioInfo(sc *scenario.Scenario) result.ScenarioInfo {
	info := result.ScenarioInfo{
		Name: sc.Name, DisplayName: sc.DisplayName, Summary: sc.Summary, Description: sc.Description, Tags: sc.Tags,
		Hash: sc.Hash, Preset: sc.Preset, Variables: map[string]string{}, Origins: map[string]string{},
	}
	for _, v := range sc.Variables {
		info.Variables[v.Name], info.Origins[v.Name] = fmt.Sprint(v.Value), v.Origin
	}
	return info
}

func targetInfo(inv target.Inventory, p *plan.Plan, c *target.Config) result.TargetInfo {
	info := result.TargetInfo{Provider: inv.Provider, Name: inv.Name, Simulated: inv.Simulated, Sources: builtin.Facts(c)}
	for _, n := range p.Target.Nodes {
		info.Nodes = append(info.Nodes, result.NodeInfo{ID: n.ID, Name: n.Name})
	}
	for _, f := range inv.Facts {
		info.Facts = append(info.Facts, [2]string{f.Name, f.Value})
	}
	for capability, text := range inv.Simulates {
		// Metrics are recorded in every run; other capabilities matter if a step needs them.
		if _, used := p.Target.Simulates[capability]; !used && capability != target.CapNodeMeter && capability != target.CapVMMeter {
			continue
		}
		if info.Simulates == nil {
			info.Simulates = map[string]string{}
		}
		info.Simulates[string(capability)] = text
	}
	return info
}

// engines names the engine of every workload that the plan runs.
func engines(p *plan.Plan) map[string]interval.Engine {
	out := map[string]interval.Engine{}
	for _, w := range p.Workloads {
		switch {
		case w.Load != nil:
			out[w.Name] = w.Load.Engine
		case w.Prefill != nil:
			out[w.Name] = w.Prefill.Engine
		}
	}
	return out
}

// Names of attachments.
const (
	attachedScenario = "scenario.json" // as parsed, with the chosen values: enough to evaluate the results again
	attachedSource   = "scenario/test.yml"
	attachedRendered = "scenario/rendered.yml"
	attachedFiles    = "scenario/files/"
)

// plainName matches names that a bundle surely accepts as file names; all others may be hostile.
var plainName = regexp.MustCompile(`^\w[\w .-]{0,100}(/\w[\w .-]{0,100}){0,4}$`)

// attachScenario copies the scenario into the bundle. Files with names that a bundle does not accept are numbered.
func attachScenario(w *result.Writer, sc *scenario.Scenario) error {
	text, err := json.Marshal(sc)
	if err != nil {
		return fmt.Errorf("attach scenario: %w", err)
	}
	texts := map[string]string{
		attachedScenario: string(text), attachedSource: sc.Source, attachedRendered: sc.Rendered,
	}
	names := make([]string, 0, len(sc.Files))
	for name := range sc.Files {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		place := attachedFiles + name
		if !plainName.MatchString(name) {
			place = fmt.Sprintf("%s%d", attachedFiles, i)
		}
		texts[place] = sc.Files[name]
	}
	for name, text := range texts {
		if err := w.Attach(name, strings.NewReader(text)); err != nil {
			return err
		}
	}
	return nil
}

// attachBaseline copies the pinned numbers into the bundle, so that it is judged by them whenever it is evaluated.
func attachBaseline(w *result.Writer, b *baseline.Baseline) error {
	text, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("attach baseline: %w", err)
	}
	return w.Attach(baseline.Attachment, bytes.NewReader(text))
}

// attachedScenarioOf reads the scenario that a bundle holds.
func attachedScenarioOf(b *result.Bundle) (*scenario.Scenario, error) {
	f, err := b.Attachment(attachedScenario)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(f); err != nil {
		return nil, fmt.Errorf("read the scenario of run %q: %w", b.Manifest().Run, err)
	}
	var sc scenario.Scenario
	if err := json.Unmarshal(text.Bytes(), &sc); err != nil {
		return nil, fmt.Errorf("read the scenario of run %q: %w", b.Manifest().Run, err)
	}
	return &sc, nil
}
