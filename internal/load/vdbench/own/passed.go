package own

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
	"github.com/braggdev/bragg/internal/load/vdbench/tree"
)

// passed are the parameters that reach vdbench itself. A scenario is untrusted: what runs commands, reads or writes files by name, or
// reaches other hosts is not among them.
var passed = map[parmfile.Kind][]string{
	parmfile.General:    {"compratio", "dedupratio", "dedupunit", "dedupsets", "data_errors", "messagescan"},
	parmfile.Storage:    {"align", "hitarea", "lun", "offset", "openflags", "range", "threads"},
	parmfile.FileSystem: {"anchor", "depth", "distribution", "files", "openflags", "sizes", "totalsize", "width", "workingsetsize", "wss"},
	parmfile.Workload:   {"sd", "hotband", "iorate", "openflags", "priority", "range", "rdpct", "rhpct", "seekpct", "skew", "stride", "threads", "whpct", "xfersize"},
	parmfile.FileWork:   {"fsd", "fileio", "fileselect", "openflags", "operation", "rdpct", "skew", "stopafter", "threads", "xfersize"},
	parmfile.Run: {"wd", "sd", "curve", "stopcurve", "distribution", "elapsed", "forcompratio", "forhitarea", "forhpct", "forrhpct", "forwhpct", "forrdpct", "forseekpct",
		"forthreads", "forxfersize", "iorate", "interval", "maxdata", "openflags", "pause", "warmup",
		"fwd", "fwdrate", "format", "operations", "foroperations"},
}

// plainValue has no character that begins a comment, a variable or another parameter.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9_./*%:-]{1,200}$`)

// ofTwo are operations that need a second file system, which is not passed on.
var ofTwo = []string{"copy", "move"}

// check refuses what must not reach vdbench.
func (o *File) check(d *parmfile.Definition) {
	keys, known := passed[d.Kind]
	if !known {
		o.refuse(d.Name, "%s is not passed to vdbench", d.Kind)
		return
	}
	if d.Kind != parmfile.General && !plainValue.MatchString(d.Name.Text) {
		o.refuse(d.Name, "this name is not passed to vdbench")
	}
	for _, p := range d.Parameters {
		if !slices.Contains(keys, p.Key.Text) {
			o.refuse(p.Key, "%s of %s is not passed to vdbench", p.Key.Text, d.Kind)
		}
		for _, v := range p.Values {
			if !passes(p.Key.Text, v.Text) {
				o.refuse(v, "this value of %s is not passed to vdbench", p.Key.Text)
			}
		}
	}
}

// passes reports whether a value may reach vdbench.
func passes(key, value string) bool {
	switch {
	case !plainValue.MatchString(value):
		return false
	case key == "data_errors": // which could also be a command
		return strings.Trim(value, "0123456789") == ""
	case strings.Contains(key, "operation"):
		return !slices.Contains(ofTwo, strings.ToLower(value))
	}
	return true
}

func (o *File) refuse(word parmfile.Word, format string, args ...any) {
	o.file.At(word, diag.SeverityError, "not-passed", fmt.Sprintf(format, args...), "docs/guides/vdbench.md lists what reaches a vdbench of your own")
}

// places are where a load's data is.
type places struct {
	lun    func(lun string) (path string, bytes int64) // of a disk of the VM; bytes is 0 of one that vdbench may use whole
	anchor func(anchor string) string
}

// text is the parameter file that vdbench gets: with the paths of this VM, an interval of a second, and in a rehearsal with fewer files.
func (o *File) text(at places) string {
	var out strings.Builder
	for _, p := range o.file.General.Parameters {
		out.WriteString(written(p) + "\n")
	}
	for i := range o.file.Definitions {
		d := &o.file.Definitions[i]
		fmt.Fprintf(&out, "%s=%s", d.Kind, d.Name.Text)
		for _, p := range d.Parameters {
			switch key := p.Key.Text; {
			case key == "lun":
				path, bytes := at.lun(p.Values[0].Text)
				out.WriteString(",lun=" + path)
				if bytes > 0 {
					fmt.Fprintf(&out, ",size=%d", bytes)
				}
			case key == "anchor":
				out.WriteString(",anchor=" + at.anchor(p.Values[0].Text))
			case key == "files" && o.factor < 1:
				fmt.Fprintf(&out, ",files=%d", o.files(d))
			case d.Kind == parmfile.Run && (key == "interval" || o.times < 1 && slices.Contains(timesOfRuns, key)):
			default:
				out.WriteString("," + written(p))
			}
		}
		if d.Kind == parmfile.Run {
			out.WriteString(o.rehearsed(d) + ",interval=1")
		}
		out.WriteString("\n")
	}
	return out.String()
}

// files are those of each folder.
func (o *File) files(fsd *parmfile.Definition) int {
	return max(1, int(fsd.Number("files", 1)*o.factor))
}

// treeBytes is about the size of a tree, by the mean of its sizes.
func (o *File) treeBytes(fsd *parmfile.Definition) int64 {
	if total, has := fsd.Size("totalsize"); has {
		return total
	}
	p, _ := fsd.Get("sizes")
	mean := 0.0
	if mix := p.Mix(); mix != nil {
		for _, s := range mix {
			mean += float64(s.Bytes) * s.Percent / 100
		}
	} else if len(p.Values) > 1 { // between a smallest and a largest one
		low, _ := parmfile.ParseSize(p.Values[0].Text)
		high, _ := parmfile.ParseSize(p.Values[1].Text)
		mean = float64(low+high) / 2
	}
	l := tree.Layout{Depth: int(fsd.Number("depth", 1)), Width: int(fsd.Number("width", 1)), Files: o.files(fsd), All: fsd.Text("distribution", "bottom") == "all"}
	return int64(min(float64(l.Count())*mean, math.MaxInt64/1e3))
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

// kindsOf are the kinds of operations that workloads on file systems and their runs ask for: first those of I/O, then others in the order of the file.
func kindsOf(f *parmfile.File) (io [2]bool, others []string) {
	add := func(kind string) {
		switch kind = strings.ToLower(kind); {
		case kind == "read":
			io[0] = true
		case kind == "write":
			io[1] = true
		case !slices.Contains(others, kind):
			others = append(others, kind)
		}
	}
	for _, fwd := range f.Of(parmfile.FileWork) {
		if _, mixed := fwd.Get("rdpct"); !mixed {
			add(fwd.Text("operation", "read"))
		} else {
			percent := fwd.Number("rdpct", 100)
			io[0], io[1] = io[0] || percent > 0, io[1] || percent < 100
		}
	}
	for _, rd := range f.Of(parmfile.Run) {
		for _, key := range []string{"operations", "foroperations"} {
			p, _ := rd.Get(key)
			for _, v := range p.Values {
				add(v.Text)
			}
		}
		if _, mixed := rd.Get("forrdpct"); mixed {
			io = [2]bool{true, true}
		}
	}
	return io, others
}

// oneKind is the number of the kind of operations of all workloads on file systems, if there is only one.
func (o *File) oneKind() (kind int, one bool) {
	switch {
	case len(o.others) > 1, len(o.others) == 1 && (o.io[0] || o.io[1]):
		return 0, false
	case len(o.others) == 1:
		return 2, true
	case o.io[1]:
		return 1, !o.io[0]
	}
	return 0, true
}
