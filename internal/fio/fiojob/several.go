package fiojob

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// Input is a job file, or options of a command line.
type Input struct {
	Name  string   // of the file, for positions and include
	Text  string   // of the file
	Words []string // "--rw=read", "--direct", "--bs", "4k": options instead of a file
}

// commandLine is the name in positions of options that come from no file. Their line is the number of the word.
const commandLine = "command line"

const inputsMax = 256

// ParseAll reads several job files and options of a command line as one, in fio's order. The options come first in any
// position: what precedes the first --name is the default of everything, below the [global] of the files; each --name starts
// a job. Then come the files in their order, each with its own [global] and behind a stonewall that waits for the one
// before. Groups are numbered through. Options.Sections picks jobs of the files. (With several files, fio 3.33 runs the
// first section of the later ones too, whatever was picked.)
func ParseAll(inputs []Input, options Options) (*File, diag.List) {
	p := &parser{options: options, reported: map[diag.Position]string{}}
	f := &File{Name: commandLine, host: options.Host}
	if len(inputs) > inputsMax {
		p.report(diag.Diagnostic{
			Code: "too-many-files", Pos: diag.Position{File: f.Name},
			Message: fmt.Sprintf("%d job files, at most %d are read", len(inputs), inputsMax),
		})
		return f, p.diags
	}
	var words []string
	for _, in := range inputs {
		words = append(words, in.Words...)
	}
	base := defaultJob()
	p.assemble(f, p.words(words), &base)
	found, files := map[string]bool{}, 0
	for _, in := range inputs {
		if in.Words != nil {
			continue
		}
		if len(in.Text) > textBytesMax {
			p.report(diag.Diagnostic{
				Code: "file-too-large", Pos: diag.Position{File: in.Name},
				Message: fmt.Sprintf("job file has %d bytes, at most %d are read", len(in.Text), textBytesMax),
			})
			return &File{Name: in.Name}, p.diags
		}
		x := lexer{p: p}
		x.text(in.Name, strings.TrimPrefix(in.Text, "\ufeff"), []string{in.Name})
		if f.Name == commandLine {
			f.Name = in.Name
		}
		before, global := len(f.jobs), base.Clone()
		p.assemble(f, p.picked(x.sections, found), &global)
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
	if len(f.jobs) == 0 && !p.diags.HasErrors() {
		p.report(diag.Diagnostic{
			Code: "no-job", Pos: diag.Position{File: f.Name, Line: 1}, Message: "the file defines no job",
			Hint: "add a section such as [job1] below [global]",
		})
	}
	return f, p.diags.Sorted()
}

// wall makes the job at first wait for all jobs before it, in a group of its own and of those that follow.
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

// assemble turns sections into jobs of f. global holds what they start from, and keeps what their global sections say.
func (p *parser) assemble(f *File, sections []rawSection, global *Job) {
	for i := range sections {
		raw := &sections[i]
		section := Section{Name: raw.name, Global: raw.global, Pos: raw.pos}
		if raw.global {
			section.Options = p.apply(global, raw)
			f.Sections = append(f.Sections, section)
			continue
		}
		job := global.Clone()
		job.Name, job.Section, job.Pos, job.source = raw.name, raw.name, raw.pos, raw.source
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

// picked drops the jobs that Options.Sections does not name, and notes those that it found.
func (p *parser) picked(sections []rawSection, found map[string]bool) []rawSection {
	if len(p.options.Sections) == 0 {
		return sections
	}
	return slices.DeleteFunc(sections, func(s rawSection) bool {
		found[s.name] = true
		return !s.global && !slices.Contains(p.options.Sections, s.name)
	})
}

// missing reports the names of Options.Sections that no file has.
func (p *parser) missing(found map[string]bool, file string) {
	var names []string
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, want := range p.options.Sections {
		if found[want] {
			continue
		}
		hint := "the file has " + strings.Join(names[:min(len(names), 10)], ", ")
		if near := diag.Nearest(want, names); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		p.report(diag.Diagnostic{
			Code: "no-section", Pos: diag.Position{File: file}, Message: fmt.Sprintf("no job file has a section %q", want), Hint: hint,
		})
	}
}

// words turns options of a command line into sections: the first is global, then one for each --name.
func (p *parser) words(words []string) []rawSection {
	if len(words) == 0 {
		return nil
	}
	sections := []rawSection{{name: "global", global: true, pos: diag.Position{File: commandLine, Line: 1}}}
	for i := 0; i < len(words); i++ {
		raw := wordOption(words[i], i+1)
		if raw.bare && takesValue(raw.key) && i+1 < len(words) {
			i++
			raw.bare, raw.value, raw.pos.Line, raw.source = false, words[i], i+1, words[i]
			raw.valueColumn = 1
		}
		if raw.key == "name" && !raw.bare {
			sections = append(sections, rawSection{
				name: raw.value, global: raw.value == "global", pos: raw.pos, source: raw.source,
			})
			if len(sections) > sectionsMax {
				p.report(diag.Diagnostic{
					Code: "too-many-sections", Pos: raw.pos, Source: raw.source, Message: fmt.Sprintf("more than %d sections", sectionsMax),
				})
				return sections
			}
			continue
		}
		s := &sections[len(sections)-1]
		s.options = append(s.options, raw)
	}
	return sections
}

// wordOption reads "--key=value", "-key=value" or "--key". The shell has expanded variables already.
func wordOption(word string, number int) rawOption {
	body := strings.TrimLeft(word, "-")
	dashes := len(word) - len(body)
	key, value, found := strings.Cut(body, "=")
	raw := rawOption{
		key: key, value: strings.Trim(value, " \t"), bare: !found, literal: true, source: word, blankBefore: isBlankAt(value, 0),
		pos:         diag.Position{File: commandLine, Line: number, Column: dashes + 1},
		valueColumn: dashes + len(key) + 2,
	}
	if raw.bare {
		raw.valueColumn = raw.pos.Column
	}
	return raw
}

// takesValue reports whether an option of a command line goes on in the next word where it has no equals sign.
func takesValue(key string) bool {
	s, known := lookup(key)
	return known && s.kind != kindFlag && !(strings.HasPrefix(s.name, "write_") && s.report)
}

// Arguments splits a command line into options of jobs, for Input.Words, and the rest in its order: the program's own
// options with their values, and file names. Everything after "--" is rest.
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
