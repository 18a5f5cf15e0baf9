// Package own runs parameter files by the user's own vdbench, which is not redistributable.
//
//	parameter file ──Read──▶ what may reach vdbench ──▶ vdbench -f run.parm -o output ──flatfile.html──▶ Intervals
//
//	home.go   the folder of the installation
//	run.go    a running load
package own

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
)

// File is a parameter file for the user's own vdbench.
type File struct {
	file    *parmfile.File
	luns    []string               // disks of the VM
	storage []*parmfile.Definition // as luns
	takes   time.Duration
}

// passed are the parameters that reach vdbench itself. A scenario is untrusted: what runs commands, reads or writes files by name, or
// reaches other hosts is not among them.
var passed = map[parmfile.Kind][]string{
	parmfile.General:  {"compratio", "dedupratio", "dedupunit", "dedupsets", "data_errors", "messagescan"},
	parmfile.Storage:  {"align", "hitarea", "lun", "offset", "openflags", "range", "threads"},
	parmfile.Workload: {"sd", "hotband", "iorate", "openflags", "priority", "range", "rdpct", "rhpct", "seekpct", "skew", "stride", "threads", "whpct", "xfersize"},
	parmfile.Run: {"wd", "sd", "curve", "stopcurve", "distribution", "elapsed", "forcompratio", "forhitarea", "forhpct", "forrhpct", "forwhpct", "forrdpct", "forseekpct",
		"forthreads", "forxfersize", "iorate", "interval", "maxdata", "openflags", "pause", "warmup"},
}

// plainValue has no character that begins a comment, a variable or another parameter.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9_./*%:-]{1,200}$`)

// Read checks what would reach vdbench.
func Read(f *parmfile.File, w *load.Workload) *File {
	o := &File{file: f}
	refuse := func(word parmfile.Word, format string, args ...any) {
		f.At(word, diag.SeverityError, "not-passed", fmt.Sprintf(format, args...), "docs/guides/vdbench.md lists what reaches a vdbench of your own")
	}
	check := func(d *parmfile.Definition) {
		keys, known := passed[d.Kind]
		if !known {
			refuse(d.Name, "%s is not passed to vdbench", d.Kind)
			return
		}
		for _, p := range d.Parameters {
			if !slices.Contains(keys, p.Key.Text) {
				refuse(p.Key, "%s of %s is not passed to vdbench", p.Key.Text, d.Kind)
			}
			for _, v := range p.Values {
				if !plainValue.MatchString(v.Text) || p.Key.Text == "data_errors" && strings.Trim(v.Text, "0123456789") != "" {
					refuse(v, "this value of %s is not passed to vdbench", p.Key.Text)
				}
			}
		}
	}
	check(&f.General)
	for i := range f.Definitions {
		d := &f.Definitions[i]
		if check(d); d.Kind != parmfile.General && !plainValue.MatchString(d.Name.Text) {
			refuse(d.Name, "this name is not passed to vdbench")
		}
		switch d.Kind {
		case parmfile.Storage:
			lun := d.Text("lun", "")
			if _, known := w.Device(lun); !known {
				refuse(d.Word("lun"), "lun=%s is not a disk of the VM", lun)
			}
			o.luns, o.storage = append(o.luns, lun), append(o.storage, d)
		case parmfile.Run:
			o.takes += d.Seconds("warmup", 0) + d.Seconds("elapsed", 30*time.Second)
		}
	}
	return o
}

// text is the parameter file that vdbench gets, with the paths of disks.
func (o *File) text(path func(lun string) string) string {
	var out strings.Builder
	for _, p := range o.file.General.Parameters {
		out.WriteString(written(p) + "\n")
	}
	for i := range o.file.Definitions {
		d := &o.file.Definitions[i]
		fmt.Fprintf(&out, "%s=%s", d.Kind, d.Name.Text)
		for _, p := range d.Parameters {
			switch {
			case p.Key.Text == "lun":
				out.WriteString(",lun=" + path(p.Values[0].Text))
			case d.Kind == parmfile.Run && p.Key.Text == "interval":
			default:
				out.WriteString("," + written(p))
			}
		}
		if d.Kind == parmfile.Run {
			out.WriteString(",interval=1")
		}
		out.WriteString("\n")
	}
	return out.String()
}

func written(p parmfile.Parameter) string {
	var values []string
	for _, v := range p.Values {
		values = append(values, v.Text)
	}
	if text := strings.Join(values, ","); p.List {
		return p.Key.Text + "=(" + text + ")"
	} else {
		return p.Key.Text + "=" + text
	}
}

// Codes of notes on a vdbench of the user's own.
const (
	noteUntested interval.NoteCode = "not-tested-with-vdbench"
	noteInterval interval.NoteCode = "interval-changed"
)

// Engine describes the load.
func (o *File) Engine() interval.Engine {
	return interval.Engine{Name: "vdbench", Loop: interval.LoopPaced, Gauges: []interval.Gauge{{Name: "run"}}, Notes: []interval.EngineNote{
		{Code: noteUntested, Text: "Bragg's tests run a recording in place of vdbench, which is not redistributable"},
		{Code: noteInterval, Text: "vdbench runs with interval=1"},
		{Code: interval.NoteResolution, Text: "vdbench states rates of seconds, and response times as a coarse histogram of each run, without its first interval or warm-up; latencies of intervals are unknown"},
	}}
}

// threadsDefault is that of vdbench.
const threadsDefault = 8

// direct reports whether a storage definition bypasses the page cache.
func direct(sd *parmfile.Definition) bool {
	p, _ := sd.Get("openflags")
	return slices.ContainsFunc(p.Values, func(v parmfile.Word) bool { return v.Text == "o_direct" || v.Text == "directio" })
}

// extentMin is the least size of a disk in a rehearsal.
const extentMin = 1 << 20

// Plan describes what would run.
func (o *File) Plan(w *load.Workload) (load.Plan, error) {
	p := load.Plan{Engine: o.Engine(), Timed: true, TakesLeast: o.takes, BytesWritten: -1, Notes: []string{"vdbench itself runs, as it is installed on the VM"},
		Program: &load.ProgramPlan{Needs: needs, Commands: []string{"vdbench -f run.parm -o output"}}}
	if w.Prefill {
		return p, &diag.Error{Code: "bad-generator-option", Exit: diag.ExitData, Message: "workload.PrefillRun: a vdbench of your own prefills nothing",
			Hint: "write a first rd that writes sequentially to its end (seekpct=eof), or prefill with a native workload"}
	}
	for i, lun := range o.luns {
		d, _ := w.Device(lun)
		length := d.SizeBytes
		if factor := w.Scale.Factor; factor > 0 && factor < 1 { // vdbench uses the disk as large as it is
			length = max(extentMin, int64(float64(length)*factor)/extentMin*extentMin)
			p.ScaledFrom += d.SizeBytes
		}
		p.Extents = append(p.Extents, extent.Extent{Device: lun, Length: length, Writes: true})
		threads := int(o.storage[i].Number("threads", threadsDefault))
		p.Jobs = append(p.Jobs, load.JobPlan{Name: lun, Pattern: "as vdbench runs it", QueueDepth: threads, DepthAsked: threads, Clones: 1, Direct: direct(o.storage[i]), SizeBytes: length, Reads: true, Writes: true, Pauses: true})
	}
	p.Extents = extent.Merge(p.Extents)
	return p, nil
}
