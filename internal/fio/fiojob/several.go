package fiojob

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Input is a job file, or options of a command line.
type Input struct {
	Name  string   // of the file, for positions and include
	Text  string   // of the file
	Words []string // "--rw=read", "--direct", "--bs", "4k": options instead of a file
}

const inputsMax = 256

// ParseAll reads several job files and options of a command line as one file, in fio's order. Options come first, wherever
// they are: those before the first --name are defaults of all jobs, below the [global] of the files; each --name starts a
// job. The files follow in order, each with its own [global] and after a stonewall. Groups are numbered consecutively.
// Options.Sections selects jobs of the files. (With several files, fio 3.33 also runs the first section of the later ones,
// even if it is not selected.)
func ParseAll(inputs []Input, options Options) (*File, diag.List) {
	p := &parser{options: options, Problems: syntax.Problems{Strict: options.Reading == syntax.Strict}}
	f := &File{Name: syntax.CommandLine, host: options.Host}
	if len(inputs) > inputsMax {
		p.Report(diag.Diagnostic{
			Code: "too-many-files", Pos: diag.Position{File: f.Name},
			Message: fmt.Sprintf("%d job files, at most %d are read", len(inputs), inputsMax),
		})
		return f, p.List
	}
	var words []string
	for _, in := range inputs {
		words = append(words, in.Words...)
	}
	base := defaultJob()
	x := syntax.Lexer{Problems: &p.Problems, Files: options.FS}
	p.assemble(f, x.Words(words, takesValue), &base)
	found, files := map[string]bool{}, 0
	for _, in := range inputs {
		if in.Words != nil {
			continue
		}
		if len(in.Text) > syntax.TextBytesMax {
			p.Report(diag.Diagnostic{
				Code: "file-too-large", Pos: diag.Position{File: in.Name},
				Message: fmt.Sprintf("job file has %d bytes, at most %d are read", len(in.Text), syntax.TextBytesMax),
			})
			return &File{Name: in.Name}, p.List
		}
		sections := x.Read(in.Name, strings.TrimPrefix(in.Text, "\ufeff"))
		if f.Name == syntax.CommandLine {
			f.Name = in.Name
		}
		before, global := len(f.jobs), base.Clone()
		p.assemble(f, p.picked(sections, found), &global)
		if files > 0 && len(f.jobs) > before {
			f.wall(before)
		}
		if len(f.jobs) > before {
			files++
		}
	}
	p.missing(found, f.Name)
	p.checkClones(f.jobs)
	p.checkFlows(f.jobs)
	if len(f.jobs) == 0 && !p.List.HasErrors() {
		p.Report(diag.Diagnostic{
			Code: "no-job", Pos: diag.Position{File: f.Name, Line: 1}, Message: "the file defines no job",
			Hint: "add a section such as [job1] below [global]",
		})
	}
	return f, p.List.Sorted()
}

// wall makes the job at first wait for all jobs before it, and begins a new group for it and those that follow.
func (f *File) wall(first int) {
	j := &f.jobs[first]
	grouped := j.Stonewall || j.newGroup
	if !j.Stonewall {
		j.Stonewall = true
		j.Set("stonewall", "1")
	}
	if grouped {
		return
	}
	for i := first; i < len(f.jobs); i++ {
		f.jobs[i].Group++
	}
}

// assemble turns sections into jobs of f. global holds their defaults, and collects the options of their global sections.
func (p *parser) assemble(f *File, sections []syntax.RawSection, global *Job) {
	for i := range sections {
		raw := &sections[i]
		section := Section{Name: raw.Name, Global: raw.Global, Pos: raw.Pos}
		if raw.Global {
			section.Options = p.apply(global, raw)
			f.Sections = append(f.Sections, section)
			continue
		}
		job := global.Clone()
		job.Name, job.Section, job.Pos, job.source = raw.Name, raw.Name, raw.Pos, raw.Source
		section.Options = p.apply(&job, raw)
		f.Sections = append(f.Sections, section)
		if n := len(f.jobs); n > 0 {
			job.Group = f.jobs[n-1].Group
			if job.Stonewall || job.newGroup {
				job.Group++
			}
		}
		p.finish(&job, raw, section.Options)
		f.jobs = append(f.jobs, job)
	}
}

// picked drops the jobs that Options.Sections does not name, and records those that it found.
func (p *parser) picked(sections []syntax.RawSection, found map[string]bool) []syntax.RawSection {
	if len(p.options.Sections) == 0 {
		return sections
	}
	return slices.DeleteFunc(sections, func(s syntax.RawSection) bool {
		found[s.Name] = true
		return !s.Global && !slices.Contains(p.options.Sections, s.Name)
	})
}

// missing reports the names of Options.Sections that are in none of the files.
func (p *parser) missing(found map[string]bool, file string) {
	names := slices.Sorted(maps.Keys(found))
	for _, want := range p.options.Sections {
		if found[want] {
			continue
		}
		hint := "the file has " + strings.Join(names[:min(len(names), 10)], ", ")
		if near := diag.Nearest(want, names); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		p.Report(diag.Diagnostic{
			Code: "no-section", Pos: diag.Position{File: file}, Message: fmt.Sprintf("no job file has a section %q", want), Hint: hint,
		})
	}
}

// takesValue reports whether an option of a command line takes the next word as its value if it has no equals sign.
func takesValue(key string) bool {
	s, known := lookup(key)
	return known && s.kind != syntax.KindFlag && !(strings.HasPrefix(s.name, "write_") && s.report)
}

// Arguments splits a command line into options of jobs, for Input.Words, and the rest in order: the program's own options
// with their values, and file names. Everything after "--" is rest.
func Arguments(arguments []string) (words, rest []string) {
	for i := 0; i < len(arguments); i++ {
		word := arguments[i]
		if word == "--" {
			return words, append(rest, arguments[i+1:]...)
		}
		body := strings.TrimLeft(word, "-")
		key, _, found := strings.Cut(body, "=")
		if _, known := lookup(key); !known || body == word {
			rest = append(rest, word)
			continue
		}
		words = append(words, word)
		if !found && takesValue(key) && i+1 < len(arguments) {
			i++
			words = append(words, arguments[i])
		}
	}
	return words, rest
}
