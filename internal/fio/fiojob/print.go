package fiojob

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/textio"
)

// Print returns the file in a form that fio reads to the same effect: every job in full, without [global], numbers in
// bytes, and without options that only affect fio's output. rename maps the names of files; nil keeps them.
func (f *File) Print(rename func(name string) string) string {
	var b strings.Builder
	for i, j := range f.jobs {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[%s]\n", j.Section)
		for _, o := range j.Printed(rename) {
			b.WriteString(o + "\n")
		}
	}
	return b.String()
}

// Printed returns the job's options as "key=value", in the order in which fio must read them.
func (j *Job) Printed(rename func(name string) string) []string {
	var out []string
	zoned := false
	for _, o := range j.Options {
		switch {
		case o.Class == syntax.Refused || o.Report || o.Key == "filename" || o.Key == "directory" && len(j.Filenames) > 0:
			continue
		case o.Key == "zonemode":
			zoned = true
			out = append(out, "zonemode="+j.ZoneMode)
			continue
		case o.Bare && o.Exact == "":
			out = append(out, o.Key)
			continue
		}
		out = append(out, o.Key+"="+o.Exact)
	}
	if j.ZoneMode == "strided" && !zoned {
		out = append(out, "zonemode=strided")
	}
	if files := j.Files(); len(files) > 0 {
		out = append(out, "filename="+syntax.JoinFilenames(files, rename))
	}
	return out
}

// CommandLine returns the fio command that is equivalent to the file, quoted for a shell.
func (f *File) CommandLine() string {
	words := []string{"fio"}
	for _, j := range f.jobs {
		words = append(words, "--name="+j.Name)
		for _, o := range j.Printed(nil) {
			if !strings.HasPrefix(o, "name=") {
				words = append(words, "--"+o)
			}
		}
	}
	return textio.Shell(words...)
}

// Unsupported reports every option that only fio itself supports, as errors that name it. A native generator refuses the
// file if the list is not empty.
func (f *File) Unsupported() diag.List {
	var list diag.List
	hint := "run it with --engine fio"
	if f.host {
		hint = "run it with fio itself"
	}
	seen := map[diag.Position]bool{}
	for _, j := range f.jobs {
		for _, o := range j.Options {
			if o.Class != syntax.Delegate || seen[o.Pos] {
				continue
			}
			seen[o.Pos] = true
			list.Add(diag.Diagnostic{
				Code: "needs-fio", Pos: o.Pos, Width: o.KeyWidth, Source: o.Source,
				Message: fmt.Sprintf("option %s=%s: %s", o.Key, o.Value, o.Why),
				Hint:    hint,
			})
		}
	}
	return list.Sorted()
}

// Undeclared reports every job without a file or with one that is not in declared, as errors. A workload may use only the
// devices of its VM.
func (f *File) Undeclared(declared []string) diag.List {
	var list diag.List
	hint := "the VM has no device"
	if len(declared) > 0 {
		hint = "the VM has " + strings.Join(declared, ", ")
	}
	for _, j := range f.jobs {
		o := syntax.Option{Key: j.Section, Pos: j.Pos, Source: j.source}
		for _, candidate := range j.Options {
			if candidate.Key == "filename" {
				o = candidate
			}
		}
		files := j.Files()
		if len(files) == 0 {
			list.Add(diag.Diagnostic{
				Code: "no-filename", Pos: o.Pos, Source: o.Source, Hint: hint,
				Message: fmt.Sprintf("job %q names no device with filename", j.Name),
			})
		}
		for _, file := range files {
			if !slices.Contains(declared, file) {
				d := diag.Diagnostic{
					Code: "unknown-device", Pos: o.Pos, Width: o.KeyWidth, Source: o.Source, Hint: hint,
					Message: fmt.Sprintf("job %q uses %q, which is not a device of the VM", j.Name, file),
				}
				if o.ValueColumn > 0 {
					d.Pos.Column, d.Width = o.ValueColumn, len(o.Value)
				}
				list.Add(d)
			}
		}
	}
	return list.Sorted()
}
