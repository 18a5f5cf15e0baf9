package lint

import (
	"cmp"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/verb"
)

// Facts are the input of rules.
type Facts struct {
	Scenario *scenario.Scenario
	Dry      planner.Dry // properties of the scenario that hold on any target
	Calls    []Call      // of all phases, in the order of execution
	catalog  verb.Catalog
	files    map[string]jobFile
}

// Call is a step of the scenario with its place in Facts.Calls.
type Call struct {
	planner.DryCall
	Index int
}

type jobFile struct {
	file *fiojob.File
	list diag.List
}

func newFacts(sc *scenario.Scenario, catalog verb.Catalog, dry planner.Dry) *Facts {
	f := &Facts{Scenario: sc, Dry: dry, catalog: catalog, files: map[string]jobFile{}}
	for i, c := range dry.Calls {
		f.Calls = append(f.Calls, Call{c, i})
	}
	for _, w := range sc.Workloads {
		text, read := sc.Files[w.ConfigFile] // unreadable files are already reported
		if _, have := f.files[w.ConfigFile]; have || !read || !f.isJobFile(w) {
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
	for _, d := range f.Dry.Faults {
		if takes(d.Code) {
			out = append(out, fromDiagnostic(d))
		}
	}
	return out
}

// isJobFile reports whether a workload's file is in fio's format: other generators have their own formats.
func (f *Facts) isJobFile(w scenario.Workload) bool {
	return w.ConfigFile != "" && (w.Generator == "" || f.catalog.Generators.RunsJobFiles(w.Generator))
}

// Jobs returns the jobs of a workload; false when it has no job file that can be read.
func (f *Facts) Jobs(w scenario.Workload) ([]fiojob.Job, bool) {
	j, ok := f.files[w.ConfigFile]
	if !ok || !f.isJobFile(w) || j.list.HasErrors() {
		return nil, false
	}
	return j.file.Jobs(), true
}

// Span returns what determines the duration of a call, and its minimum duration when it runs first.
func (c Call) Span() (verb.Span, time.Duration) {
	if len(c.Times) == 0 {
		return verb.SpanTarget, 0
	}
	return c.Times[0].Span, c.Times[0].Length
}

// Runtime is the runtime of the load that a call starts; 0 without one.
func (c Call) Runtime() time.Duration {
	if c.Effect.Starts() == "" {
		return 0
	}
	return c.Effect.Load.Runtime
}

// startsAsync returns the workload that a call starts without waiting for its end, "" for none.
func (c Call) startsAsync() string {
	if c.Effect.Starts() == "" || !c.Effect.Load.Async {
		return ""
	}
	return c.Effect.Load.Workload
}

// ends returns the workload that a call waits for or stops, "" for none.
func (c Call) ends() string { return cmp.Or(c.Effect.Awaits, c.Effect.Stops) }

// prefills reports whether a call fills the disks that a load uses.
func (c Call) prefills() bool { return c.Effect.Load != nil && c.Effect.Load.Prefill }
