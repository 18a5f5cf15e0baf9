// Package own runs parameter files by the user's own vdbench, which is not redistributable.
//
//	parameter file ──Read──▶ what may reach vdbench ──▶ vdbench -f run.parm -o output ──flatfile.html──▶ Intervals
//
//	home.go     the folder of the installation
//	passed.go   what reaches vdbench, and the file that it gets
//	run.go      a running load
//	count.go    rows and histograms as Intervals
package own

import (
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
	"github.com/braggdev/bragg/internal/unit"
)

// File is a parameter file for the user's own vdbench.
type File struct {
	file       *parmfile.File
	luns       []string               // disks of the VM
	storage    []*parmfile.Definition // as luns
	disk       string                 // that the trees of file systems are on, if the file has any
	fileSystem program.FileSystem     // of that disk, if it is a block device
	factor     float64                // of files in each folder; less than 1 in a rehearsal
	times      float64                // of the times of runs, as well
	takes      time.Duration
	shortest   time.Duration // of a rehearsal
	io         [2]bool       // whether workloads on file systems read and write
	others     []string      // other operations of theirs
}

// Read checks what would reach vdbench. The trees of file systems are on a disk, which has a file system of its own if it is a block device.
func Read(f *parmfile.File, w *load.Workload, disk string, files program.FileSystem) *File {
	o := &File{file: f, factor: 1, times: 1, fileSystem: files}
	if s := w.Scale.Factor; s > 0 && s < 1 {
		o.factor = s
	}
	if s := w.Scale.Times; s > 0 && s < 1 && w.Runtime == 0 {
		o.times = s
	}
	o.check(&f.General)
	for i := range f.Definitions {
		d := &f.Definitions[i]
		o.check(d)
		switch d.Kind {
		case parmfile.Storage:
			lun := d.Text("lun", "")
			if _, known := w.Device(lun); !known {
				o.refuse(d.Word("lun"), "lun=%s is not a disk of the VM", lun)
			}
			o.luns, o.storage = append(o.luns, lun), append(o.storage, d)
		case parmfile.FileSystem:
			o.disk = disk
		case parmfile.Run:
			elapsed := o.lasts(d, "elapsed")
			o.takes += o.lasts(d, "warmup") + elapsed
			o.shortest += min(elapsed, elapsedMin)
		}
	}
	o.io, o.others = kindsOf(f)
	if len(o.luns) > 0 && o.disk != "" {
		o.refuse(f.Of(parmfile.Storage)[0].Name, "a file with both sd and fsd; write two")
	}
	return o
}

// Codes of notes on a vdbench of the user's own.
const (
	noteInterval interval.NoteCode = "interval-changed"
	noteBytes    interval.NoteCode = "bytes-shared-out"
	noteMixed    interval.NoteCode = "no-latency-by-kind"
	noteFormat   interval.NoteCode = "format-uncounted"
)

// Engine describes the load.
func (o *File) Engine() interval.Engine {
	e := interval.Engine{Name: "vdbench", Loop: interval.LoopPaced, Gauges: []interval.Gauge{{Name: "run"}}, Notes: []interval.EngineNote{
		{Code: noteInterval, Text: "vdbench runs with interval=1"},
		{Code: interval.NoteResolution, Text: "vdbench states rates of seconds, and response times as a coarse histogram of each run, without its first interval or warm-up; latencies of intervals are unknown"},
	}}
	note := func(code interval.NoteCode, text string) {
		e.Notes = append(e.Notes, interval.EngineNote{Code: code, Text: text})
	}
	if o.disk == "" {
		note(noteBytes, "vdbench does not state bytes of reads and writes apart: they are shared out by operations")
		return e
	}
	if len(o.others) > 0 {
		e.Operations = append([]string{"read", "write"}, o.others...)
	}
	if _, one := o.oneKind(); !one {
		note(noteMixed, "vdbench states response times of all operations on files together, which belong to no kind: they are in histogram.html only")
	}
	note(noteFormat, "operations of a format, and opening and closing files, are not counted")
	return e
}

// threadsDefault is that of vdbench, and of its file workloads.
const (
	threadsDefault     = 8
	fileThreadsDefault = 1
)

// direct reports whether a definition bypasses the page cache.
func direct(d *parmfile.Definition) bool {
	p, _ := d.Get("openflags")
	return slices.ContainsFunc(p.Values, func(v parmfile.Word) bool { return v.Text == "o_direct" || v.Text == "directio" })
}

// extentMin is the least size of a disk in a rehearsal.
const extentMin = 1 << 20

// Plan describes what would run.
func (o *File) Plan(w *load.Workload) (load.Plan, error) {
	p := load.Plan{Engine: o.Engine(), Timed: true, TakesLeast: o.takes, TakesShortest: o.shortest, BytesWritten: -1, Notes: []string{"vdbench itself runs, as it is installed on the VM"},
		Program: &load.ProgramPlan{Needs: needs, Commands: []string{"vdbench -f run.parm -o output"}}}
	if w.Prefill && o.disk == "" {
		return p, &diag.Error{Code: "bad-generator-option", Exit: diag.ExitData, Message: "workload.PrefillRun: a vdbench of your own prefills nothing",
			Hint: "write a first rd that writes sequentially to its end (seekpct=eof), or prefill with a native workload"}
	}
	if n := len(p.Engine.Operations); n > interval.OperationsMax {
		return p, &diag.Error{Code: "bad-generator-option", Exit: diag.ExitData, Message: fmt.Sprintf("%s has %d kinds of operations, and a load has at most %d", o.file.Name, n, interval.OperationsMax),
			Hint: "write two parameter files"}
	}
	for i, lun := range o.luns {
		d, _ := w.Device(lun)
		length := d.SizeBytes
		if o.factor < 1 { // vdbench uses the disk as large as it is
			length = max(extentMin, int64(float64(length)*o.factor)/extentMin*extentMin)
			p.ScaledFrom += d.SizeBytes
		}
		p.Extents = append(p.Extents, extent.Extent{Device: lun, Length: length, Writes: true})
		p.Jobs = append(p.Jobs, job(lun, o.storage[i], threadsDefault, length))
	}
	if o.disk != "" {
		if err := o.planTrees(w, &p); err != nil {
			return p, err
		}
	}
	if w.Prefill {
		p.Jobs, p.Extents, p.BytesWritten, p.Timed, p.TakesLeast, p.TakesShortest = nil, nil, 0, false, 0, 0
		p.Program.Commands = nil
		p.Notes = append(p.Notes, "vdbench makes its files itself (format=yes)")
	}
	p.Extents = extent.Merge(p.Extents)
	return p, nil
}

func job(name string, d *parmfile.Definition, threads int, bytes int64) load.JobPlan {
	threads = int(d.Number("threads", float64(threads)))
	return load.JobPlan{Name: name, Pattern: "as vdbench runs it", QueueDepth: threads, DepthAsked: threads, Clones: 1, Direct: direct(d), SizeBytes: bytes, Reads: true, Writes: true, Pauses: true}
}

// planTrees adds the trees of file systems to a plan.
func (o *File) planTrees(w *load.Workload, p *load.Plan) error {
	total := int64(0)
	for _, fsd := range o.file.Of(parmfile.FileSystem) {
		bytes := o.treeBytes(fsd)
		total += bytes
		p.Notes = append(p.Notes, fmt.Sprintf("fsd=%s: about %s, anchor: a folder on disk %s", fsd.Name.Text, unit.FormatBytes(bytes), o.disk))
	}
	for _, fwd := range o.file.Of(parmfile.FileWork) {
		j := job(fwd.Name.Text, fwd, fileThreadsDefault, total)
		if _, own := fwd.Get("openflags"); !own {
			of, _ := fwd.Get("fsd")
			j.Direct = !slices.ContainsFunc(o.file.Select(parmfile.FileSystem, of), func(fsd *parmfile.Definition) bool { return !direct(fsd) })
		}
		p.Jobs = append(p.Jobs, j)
	}
	o.fileSystem.Plan(p)
	p.Extents = append(p.Extents, extent.Extent{Device: o.disk, Length: total, Writes: true})
	if o.factor < 1 {
		p.ScaledFrom = int64(float64(total) / o.factor)
	}
	return program.CheckFits(w, o.disk, total, "the files of "+o.file.Name+" take about", "use a larger disk, or fewer files")
}
