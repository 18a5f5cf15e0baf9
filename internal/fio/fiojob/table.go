package fiojob

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// spec is one option of fio.
type spec struct {
	name  string
	class syntax.Class
	// elsewhere is the class in workloads of an option that is native only with Options.Host; "" is the same class.
	elsewhere syntax.Class
	why       string
	does      string // for native options: its effect, a clause
	kind      syntax.Kind
	apply     apply // nil: the text is kept without a typed value
	report    bool  // only affects fio's own output
	note      bool  // warn wherever it is used
}

// notHost is why options are refused in a file that another machine will run.
const notHost = "it opens files on the machine that runs the workload, and workloads may only use its devices"

// checked has checks for options of groups, whose values are kept as text.
var checked = map[string]apply{
	"mem":            noFile(":"),
	"verify_pattern": noFile("'"),
}

// table joins native and groups by name.
var table = sync.OnceValue(func() map[string]spec {
	t := map[string]spec{}
	for _, s := range slices.Concat(native, logOptions, nativeControl, nativeFiles, nativeFlow, verification, commandPriority, memoryNodes, cpuLoad) {
		s.class = syntax.Native
		t[s.name] = s
	}
	for _, class := range syntax.Groups {
		for _, g := range class {
			for name := range strings.FieldsSeq(g.Names) {
				t[name] = spec{name: name, class: g.Class, why: g.Why, report: g.Report, note: g.Note, elsewhere: g.Elsewhere}
			}
		}
	}
	for name, s := range t {
		s.kind = syntax.KindOf(name)
		if s.class != syntax.Native {
			s.apply = checked[name]
		}
		if s.apply == nil && s.class != syntax.Refused && !s.note {
			s.apply = checkOf(s.kind)
		}
		t[name] = s
	}
	return t
})

// classFor returns the class of an option for a reader that is a host, or for a workload.
func (s *spec) classFor(host bool) syntax.Class {
	if s.elsewhere != "" && !host {
		return s.elsewhere
	}
	return s.class
}

// checkOf returns the check for values of an option without a field in Job, nil if any text is valid.
func checkOf(k syntax.Kind) apply {
	switch k {
	case syntax.KindSwitch:
		return boolean(func(*Job) *bool { return new(bool) })
	case syntax.KindFlag:
		return flag(func(*Job) *bool { return new(bool) })
	case syntax.KindCount, syntax.KindBytes, syntax.KindSize, syntax.KindTime:
		return func(_ *Job, a *arg) { a.Numbers() }
	case syntax.KindChoice:
		return noBlank
	case syntax.KindText:
		return func(_ *Job, a *arg) { a.Blank() }
	}
	return nil
}

var optionNames = sync.OnceValue(func() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(table())), maps.Keys(syntax.Aliases))
	slices.Sort(names)
	return names
})

// Names returns the names of all options in alphabetic order, including aliases.
func Names() []string { return slices.Clone(optionNames()) }

func lookup(key string) (spec, bool) {
	s, ok := table()[syntax.Canonical(key)]
	return s, ok
}

// ClassOf returns the class of an option by its name alone, and the reason; some values of native options are delegated.
func ClassOf(key string) (syntax.Class, string) {
	if s, ok := lookup(key); ok {
		return s.classFor(false), s.why
	}
	return syntax.Unknown, ""
}

// Description describes an option in the documentation.
type Description struct {
	Class syntax.Class // in workloads
	Host  syntax.Class // in bragg io
	Value string       // its values: "bytes", "0 or 1", …
	Text  string       // the effect of a native option, or why another one is not native; a clause
}

// Describe describes an option by its name alone, and returns false for an unknown name.
func Describe(key string) (Description, bool) {
	s, ok := lookup(key)
	text := s.why
	if s.class == syntax.Native {
		text = s.does
	}
	return Description{Class: s.classFor(false), Host: s.classFor(true), Value: string(s.kind), Text: text}, ok
}

func setName(j *Job, a *arg) {
	// name= in [global] has no effect, as in fio.
	if j.Section != "" && a.Text != "" {
		a.Blank()
		j.Name = a.Text
	}
}

func setZoneMode(j *Job, a *arg) {
	if v, ok := a.Choice(a.Text, []string{"none", "strided", "zbd"}, nil); ok {
		j.ZoneMode = v
		if v == "zbd" {
			a.Delegate(syntax.WhyZoned)
		}
	}
}
