package fiojob

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// spec is one option of fio.
type spec struct {
	name  string
	class Class
	// elsewhere is the class in workloads of an option that is native only with Options.Host; "": the same.
	elsewhere Class
	why       string
	does      string // for native options: what it does, a clause
	kind      kind
	apply     apply // nil: the text is kept and has no typed meaning
	report    bool  // only shapes fio's own output
	note      bool  // warn wherever it is used
}

// notHost is why options are refused in a file that another machine will run.
const notHost = "it opens files of the machine that runs the workload, which may use its devices only"

// aliases maps other spellings to the canonical one.
var aliases = map[string]string{
	"readwrite": "rw", "blocksize": "bs", "blockalign": "ba", "blocksize_range": "bsrange",
	"blocksize_unaligned": "bs_unaligned", "iodepth_batch_submit": "iodepth_batch",
	"iodepth_batch_complete": "iodepth_batch_complete_min", "io_limit": "io_size", "fill_fs": "fill_device",
	"fileoffset": "offset", "nr_files": "nrfiles", "timeout": "runtime", "iomem": "mem", "mem_align": "iomem_align",
	"ratemin": "rate_min", "ratecycle": "rate_cycle", "wait_for_previous": "stonewall",
	"disable_bw": "disable_bw_measurement", "ss": "steadystate", "ss_dur": "steadystate_duration",
	"ss_ramp": "steadystate_ramp_time", "proto": "protocol",
	"ss_interval": "steadystate_check_interval", "fdp_pli_select": "plid_select", "chunck_size": "chunk_size",
}

// checked gives options of groups, whose values are kept as text, a look at the value.
var checked = map[string]apply{
	"mem":            noFile(":"),
	"verify_pattern": noFile("'"),
}

// table joins native and groups by name.
var table = sync.OnceValue(func() map[string]spec {
	t := map[string]spec{}
	for _, s := range slices.Concat(native, logOptions, nativeControl, nativeFiles, nativeFlow, verification, commandPriority, memoryNodes, cpuLoad) {
		s.class, s.does = Native, cmp.Or(s.does, purposes[s.name])
		t[s.name] = s
	}
	for _, class := range groups {
		for _, g := range class {
			for name := range strings.FieldsSeq(g.names) {
				t[name] = spec{name: name, class: g.class, why: g.why, report: g.report, note: g.note, elsewhere: g.elsewhere}
			}
		}
	}
	for name, s := range t {
		s.kind = kindOf(name)
		if s.class != Native {
			s.apply = checked[name]
		}
		if s.apply == nil && s.class != Refused && !s.note {
			s.apply = checkOf(s.kind)
		}
		t[name] = s
	}
	return t
})

// classFor returns the class of an option for a reader that is a host or not.
func (s *spec) classFor(host bool) Class {
	if s.elsewhere != "" && !host {
		return s.elsewhere
	}
	return s.class
}

// checkOf returns how the value of an option is looked at that has no field in Job, nil where any text will do.
func checkOf(k kind) apply {
	switch k {
	case kindSwitch:
		return boolean(func(*Job) *bool { return new(bool) })
	case kindFlag:
		return flag(func(*Job) *bool { return new(bool) })
	case kindCount, kindBytes, kindSize, kindTime:
		return numbers
	case kindChoice:
		return noBlank
	case kindText:
		return func(_ *Job, a *arg) { a.blank() }
	}
	return nil
}

var optionNames = sync.OnceValue(func() []string {
	var names []string
	for name := range table() {
		names = append(names, name)
	}
	for name := range aliases {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
})

// Names returns the names of all options in alphabetic order, aliases among them.
func Names() []string { return slices.Clone(optionNames()) }

// canonical returns fio's first name of an option.
func canonical(key string) string {
	if to, ok := aliases[key]; ok {
		return to
	}
	return key
}

func lookup(key string) (spec, bool) {
	s, ok := table()[canonical(key)]
	return s, ok
}

// ClassOf returns how an option is treated by its name alone, and why; some values of native options are delegated.
func ClassOf(key string) (Class, string) {
	if s, ok := lookup(key); ok {
		return s.classFor(false), s.why
	}
	return Unknown, ""
}

// Description is what the documentation says about an option.
type Description struct {
	Class Class  // in workloads
	Host  Class  // in bragg io
	Value string // what it takes: "bytes", "0 or 1", …
	Text  string // what a native option does, or why another one is not native; a clause
}

// Describe returns what is known about an option by its name alone, and false for a name that is none.
func Describe(key string) (Description, bool) {
	s, ok := lookup(key)
	text := s.why
	if s.class == Native {
		text = s.does
	}
	return Description{Class: s.classFor(false), Host: s.classFor(true), Value: string(s.kind), Text: text}, ok
}

func setName(j *Job, a *arg) {
	// name= in [global] has no effect, also in fio.
	if j.Section != "" && a.text != "" {
		a.blank()
		j.Name = a.text
	}
}

func setZoneMode(j *Job, a *arg) {
	if v, ok := a.choice(a.text, []string{"none", "strided", "zbd"}, nil); ok {
		j.ZoneMode = v
		if v == "zbd" {
			a.delegate(whyZoned)
		}
	}
}
