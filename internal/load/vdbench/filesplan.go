package vdbench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/load/vdbench/tree"
	"github.com/braggdev/bragg/internal/unit"
)

// place finds the disk that anchors are on.
func (c *config) place(w *load.Workload) error {
	o := &load.Options{Values: w.Options}
	c.disk, c.fileSystem = program.ReadDisk(o, w), program.ReadFileSystem(o)
	return o.Err(w.Name, "docs/guides/vdbench.md lists the options of "+Name)
}

// noPlace refuses its options where nothing is on a file system.
func noPlace(w *load.Workload) error {
	o := &load.Options{Values: w.Options}
	for _, name := range append([]string{optionDisk}, program.FileSystemNames...) {
		if _, given := w.Options[name]; given {
			o.Fault(name, "%s: only file systems (fsd) have one; sd have a lun", name)
		}
	}
	return o.Err(w.Name, "docs/guides/vdbench.md lists the options of "+Name)
}

// Codes of notes on runs on file systems.
const (
	noteAnchor  interval.NoteCode = "anchor-mapped"
	noteDefault interval.NoteCode = "vdbench-default"
	noteFormat  interval.NoteCode = "format-uncounted"
	noteNames   interval.NoteCode = "names-not-counted"
)

// kinds are the kinds of operations of all runs, beginning with those of I/O.
func (f *files) kinds() []string {
	names := []string{string(tree.Read), string(tree.Write)}
	for i := range f.runs {
		for k := range f.runs[i].works {
			if o := string(f.runs[i].works[k].Operation); !slices.Contains(names, o) {
				names = append(names, o)
			}
		}
	}
	return names
}

// operations are the kinds, and nil if they are those of I/O only.
func (f *files) operations() []string {
	if names := f.kinds(); len(names) > 2 {
		return names
	}
	return nil
}

func (f *files) paced() bool {
	return slices.ContainsFunc(f.runs, func(r fileRun) bool { return r.rate > 0 })
}

// filesEngine describes a load on file systems.
func (c *config) filesEngine() interval.Engine {
	f := &c.files
	e := interval.Engine{Name: Name, Loop: interval.LoopClosed, Backends: []string{"blocking calls"}, Operations: f.operations(), Gauges: []interval.Gauge{gaugeRun}}
	if f.paced() {
		e.Loop = interval.LoopOpen
	}
	note := func(code interval.NoteCode, format string, args ...any) {
		e.Notes = append(e.Notes, interval.EngineNote{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	var anchors []string
	for i := range f.systems {
		anchors = append(anchors, f.systems[i].anchor)
	}
	note(noteAnchor, "anchor %s: a folder on disk %s", strings.Join(anchors, ", "), c.disk)
	for _, d := range [][2]string{{"fileio", "sequential"}, {"fileselect", "sequential"}, {"stopafter", "100"}} {
		if f.notSet[d[0]] {
			note(noteDefault, "%s is not set, and taken as %s", d[0], d[1])
		}
	}
	if slices.ContainsFunc(f.runs, func(r fileRun) bool { return r.format.any() }) {
		note(noteFormat, "operations of a format are not counted; a tree that workload.PrefillRun has just made is not made again")
	}
	note(noteNames, "opening and closing files is not counted, and files have other names than those of vdbench")
	return e
}

// planFiles describes runs on file systems, or the prefill of their trees.
func (c *config) planFiles(w *load.Workload) (load.Plan, error) {
	f := &c.files
	p := load.Plan{Engine: c.filesEngine(), Timed: true, Notes: []string{"a native translation of the parameter file: vdbench itself does not run"}}
	if n := len(p.Engine.Operations); n > interval.OperationsMax {
		return p, &diag.Error{Code: "not-translated", Exit: diag.ExitData, Message: fmt.Sprintf("%s has %d kinds of operations, and a load has at most %d", c.file.Name, n, interval.OperationsMax),
			Hint: "write two parameter files"}
	}
	var total, full int64
	for i := range f.systems {
		s := &f.systems[i]
		l := &s.layout
		bytes := l.Bytes()
		total += bytes
		whole := *l
		if whole.Files = s.full; l.Files != s.full {
			full += int64(float64(bytes) * float64(whole.Files) / float64(l.Files))
		}
		p.Notes = append(p.Notes, fmt.Sprintf("fsd=%s: %d folders, %d files, %s", s.name, l.Folders(), l.Count(), unit.FormatBytes(bytes)))
	}
	p.ScaledFrom = full
	p.Extents = []extent.Extent{{Device: c.disk, Length: total, Writes: true}}
	c.fileSystem.Plan(&p)
	if err := program.CheckFits(w, c.disk, total, "the files of "+c.file.Name+" take", "use a larger disk, or fewer files"); err != nil {
		return p, err
	}
	if w.Prefill {
		p.Timed, p.BytesWritten = false, total
		p.Jobs = []load.JobPlan{{Name: "format", Pattern: "write", BlockSizes: "128KiB", QueueDepth: 8, DepthAsked: 8, Clones: 1, SizeBytes: total, Writes: true, BlockMin: 1, BlockMax: 128 << 10}}
		p.BlockBytesMax = max(p.BlockBytesMax, 128<<10)
		return p, nil
	}
	for i := range f.runs {
		f.planRun(i, &p, c.inRehearsal(f.runs[i].elapsed))
	}
	p.TakesLeast, p.TakesShortest = c.takes(), c.shortest
	if !slices.ContainsFunc(f.runs, func(r fileRun) bool { return r.format.any() }) {
		p.TakesMost = p.TakesLeast
	}
	if w.Runtime > 0 && w.Runtime < c.takes() {
		p.Notes = append(p.Notes, fmt.Sprintf("the runs take %s, and the load ends after %s", unit.FormatDuration(c.takes()), unit.FormatDuration(w.Runtime)))
	}
	return p, nil
}

// planRun adds one run to a plan.
func (f *files) planRun(i int, p *load.Plan, length string) {
	r := &f.runs[i]
	text := fmt.Sprintf("run %d: %s", i+1, r.name)
	if r.warmup > 0 {
		text += fmt.Sprintf("; warm-up %s", unit.FormatDuration(r.warmup))
	}
	if r.format.only {
		text = fmt.Sprintf("run %d: format only", i+1)
	}
	p.Notes = append(p.Notes, text+length)
	if r.format.any() || p.BytesWritten < 0 {
		p.BytesWritten = -1
	}
	for k := range r.works {
		w := &r.works[k]
		job := load.JobPlan{Name: fmt.Sprintf("%d %s", i+1, w.Name), Pattern: w.pattern(), QueueDepth: w.Threads, DepthAsked: w.Threads, Clones: 1, Direct: w.Access.Direct && w.Operation.Moves(),
			SizeBytes: f.systems[w.on].layout.Bytes(), Pauses: true, Linear: r.linear, NoRandomMap: true, Flushes: w.Access.Sync || w.Access.Flush, RateIOPS: r.rate * w.Share}
		if w.Operation.Moves() {
			job.Reads, job.Writes = w.Reads > 0, w.Reads < 100
			var mean float64
			job.BlockMin = w.Sizes[0].Bytes
			for _, s := range w.Sizes {
				job.BlockMin, job.BlockMax = min(job.BlockMin, s.Bytes), max(job.BlockMax, s.Bytes)
				mean += float64(s.Bytes) * s.Percent / 100
			}
			job.BlockSizes = blockSizes(w.Sizes)
			p.MemoryBytes += job.BlockMax * int64(w.Threads)
			if writes := job.RateIOPS * (100 - w.Reads) / 100 * mean; job.Writes && (writes == 0 || p.BytesWritten < 0) {
				p.BytesWritten = -1
			} else {
				p.BytesWritten += int64(writes * (r.warmup + r.elapsed).Seconds())
			}
		}
		p.BlockBytesMax = max(p.BlockBytesMax, job.BlockMax)
		p.Jobs = append(p.Jobs, job)
	}
}

func blockSizes(all []tree.Share) string {
	if len(all) == 1 {
		return unit.FormatBytes(all[0].Bytes)
	}
	var parts []string
	for _, s := range all {
		parts = append(parts, fmt.Sprintf("%s %g %%", unit.FormatBytes(s.Bytes), s.Percent))
	}
	return strings.Join(parts, ", ")
}

// pattern names what a workload does.
func (w *fileWork) pattern() string {
	if !w.Operation.Moves() {
		return string(w.Operation)
	}
	order := "sequential"
	if w.Random {
		order = "random"
	}
	switch w.Reads {
	case 100:
		return order + " read of files"
	case 0:
		return order + " write of files"
	}
	return fmt.Sprintf("%s of files, %g %% reads", order, w.Reads)
}

// simulatedLatency is that of every operation on VMs in memory.
const simulatedLatency = time.Millisecond
