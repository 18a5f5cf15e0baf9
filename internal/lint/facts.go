package lint

import (
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/run"
	"github.com/braggdev/bragg/internal/scenario"
)

// Facts are what rules look at.
type Facts struct {
	Scenario *scenario.Scenario
	Catalog  run.Catalog
	Calls    []Call // of all phases, in the order of execution
	files    map[string]jobFile
	faults   diag.List // that a plan refuses on any target
	times    []run.StepTime
}

// Call is a step with its phase.
type Call struct {
	scenario.Call
	Phase string // "setup", "run" or "teardown"
	Index int    // in Facts.Calls
}

type jobFile struct {
	file *fiojob.File
	list diag.List
}

func newFacts(sc *scenario.Scenario, catalog run.Catalog, faults diag.List) *Facts {
	f := &Facts{Scenario: sc, Catalog: catalog, files: map[string]jobFile{}, faults: faults,
		times: run.Outline(sc, catalog)}
	for _, phase := range []struct {
		name  string
		calls []scenario.Call
	}{{"setup", sc.Setup}, {"run", sc.Run}, {"teardown", sc.Teardown}} {
		for _, c := range scenario.Flatten(phase.calls) {
			f.Calls = append(f.Calls, Call{Call: c, Phase: phase.name, Index: len(f.Calls)})
		}
	}
	for _, w := range sc.Workloads {
		text, read := sc.Files[w.ConfigFile] // one that could not be read is told already
		if _, have := f.files[w.ConfigFile]; have || !read || !isJobFile(w) {
			continue
		}
		file, list := fiojob.Parse(w.ConfigFile, text, fiojob.Options{})
		f.files[w.ConfigFile] = jobFile{file, list}
	}
	return f
}

// faultsWith returns the faults with certain codes as findings.
func (f *Facts) faultsWith(takes func(code string) bool) []finding.Finding {
	var out []finding.Finding
	for _, d := range f.faults {
		if takes(d.Code) {
			out = append(out, fromDiagnostic(d))
		}
	}
	return out
}

// isJobFile tells whether a workload's file is in fio's format: other generators have formats of their own.
func isJobFile(w scenario.Workload) bool {
	return w.ConfigFile != "" && slices.Contains([]string{"", "fio", "native"}, w.Generator)
}

// Jobs returns the jobs of a workload; false when it has no job file that can be read.
func (f *Facts) Jobs(w scenario.Workload) ([]fiojob.Job, bool) {
	j, ok := f.files[w.ConfigFile]
	if !ok || !isJobFile(w) || j.list.HasErrors() {
		return nil, false
	}
	return j.file.Jobs(), true
}

// Workload returns the workload that a call names.
func (f *Facts) Workload(c Call) (scenario.Workload, bool) {
	return f.Scenario.Workload(c.Text("workload_name"))
}

// argument returns the value of an argument, nil when it is not given.
func (c Call) argument(name string) any {
	for _, a := range c.Args {
		if a.Name == name {
			return a.Value
		}
	}
	return nil
}

// Text returns an argument as text.
func (c Call) Text(name string) string {
	s, _ := c.argument(name).(string)
	return s
}

// Flag returns a yes/no argument.
func (c Call) Flag(name string) bool {
	b, _ := c.argument(name).(bool)
	return b
}

// Number returns an argument as a number.
func (c Call) Number(name string) (float64, bool) {
	switch v := c.argument(name).(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// Seconds returns an argument as a time.
func (c Call) Seconds(name string) (time.Duration, bool) {
	v, ok := c.Number(name)
	return time.Duration(v * float64(time.Second)), ok
}

// Groups returns the VM groups that a call is about, by itself, by its workload or by its inventory.
func (f *Facts) Groups(c Call) []string {
	var groups []string
	if g := c.Text("vm_group_name"); g != "" {
		groups = append(groups, g)
	}
	if w, ok := f.Workload(c); ok {
		groups = append(groups, w.Group)
	}
	if inventory, ok := c.argument("inventory").([]any); ok {
		for _, entry := range inventory {
			if g, ok := entry.(string); ok {
				groups = append(groups, g)
			}
		}
	}
	return groups
}

// Starts tells whether a call starts a load as such, not its prefill.
func (c Call) Starts() bool { return c.Name == "workload.Start" }

// Prefills tells whether a call fills the disks that a load uses.
func (c Call) Prefills() bool {
	return c.Name == "workload.PrefillRun" || c.Name == "workload.PrefillStart"
}

// RunsPrograms tells whether a call runs programs whose effect is not known.
func (c Call) RunsPrograms() bool {
	return c.Name == "playbook.Run" || c.Name == "vm_group.RunCommand" || c.Name == "experimental.Shell"
}

// Times returns when a call begins and how long it takes at least, once for each time that it runs.
func (f *Facts) Times(c Call) []run.StepTime {
	var out []run.StepTime
	for _, t := range f.times {
		if t.Call.Pos == c.Pos && t.Call.RenderedLine == c.RenderedLine && t.Call.Name == c.Name {
			out = append(out, t)
		}
	}
	return out
}

// RunEnd is when the last step of the run phase ends, at the earliest.
func (f *Facts) RunEnd() time.Duration {
	var end time.Duration
	for _, t := range f.times {
		if t.Phase == run.Run {
			end = max(end, t.Start+t.Length)
		}
	}
	return end
}

// Takes says how long a call blocks as far as its arguments tell. Known is false when that depends on the target.
func (c Call) Takes() (d time.Duration, known bool) {
	switch {
	case c.Name == "test.Wait":
		return c.Seconds("duration_secs")
	case c.Starts():
		stagger, _ := c.Seconds("stagger_secs")
		if c.Flag("async") {
			return stagger, true
		}
		runtime, ok := c.Seconds("runtime_secs")
		return stagger + runtime, ok
	case c.Name == "vm_group.CreatePeriodicSnapshots" && !c.Flag("async"):
		n, okN := c.Number("num_snapshots")
		minutes, okM := c.Number("interval_minutes")
		return time.Duration(max(n-1, 0) * minutes * float64(time.Minute)), okN && okM
	case strings.HasPrefix(c.Name, "cluster."), c.Name == "vm_group.CreatePeriodicSnapshots":
		return 0, true
	}
	return 0, false
}
