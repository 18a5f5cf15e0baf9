package fiojob

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Options defines what a job file may access in its environment. The zero value allows nothing.
type Options struct {
	Env func(name string) (string, bool) // for ${NAME}; nil: all variables are unset
	FS  fs.FS                            // for include, nil refuses it; names are slash paths below its root

	// WorkFS is the current folder, where fio looks for the files of patterns: after FS, and before it in the exact reading.
	WorkFS fs.FS

	Sections []string // names of the jobs to use, as in [name]; empty: all

	// Windows: names may begin with a drive letter (C:\data), whose colon does not separate names.
	Windows bool

	Reading syntax.Reading // how doubtful text is read; the zero value is what its author meant

	// Host says that jobs run on this machine with the rights of their author, as with fio: options that do not apply to a
	// workload on the devices of a VM are native, and jobs may name files that are not devices.
	Host bool

	PageSize, CPUs, MemoryMB int64 // for $pagesize, $ncpus, $mb_memory; 0: not known, an error if used
}

// File is a parsed job file.
type File struct {
	Name     string
	Sections []Section // as written, in order, including globals
	jobs     []Job
	host     bool // as Options.Host
}

// Section is one [section] as it was written.
type Section struct {
	Name    string
	Global  bool
	Pos     diag.Position
	Options []syntax.Option
}

// Jobs returns the jobs in the file's order. The caller may change the Jobs, but not the contents of their slices.
func (f *File) Jobs() []Job { return slices.Clone(f.jobs) }

// Parse reads a job file. It reports every problem at once and always returns a File; if the List has errors, the jobs hold
// what was understood. name is used in positions and to find included files.
func Parse(name, text string, options Options) (*File, diag.List) {
	return ParseAll([]Input{{Name: name, Text: text}}, options)
}

// Bounds of a file's jobs. fio 3.33 starts at most 4096.
const (
	clonesMax     = 4096
	cloneFilesMax = 1 << 16 // clones × files
	// buffersBytesMax bounds the buffers of all operations in flight. X-Ray's largest file needs 512 MiB.
	buffersBytesMax = 64 << 30
)

func (p *parser) checkClones(jobs []Job) {
	clones, files := 0, 0
	buffers := int64(0)
	for i := range jobs {
		j := &jobs[i]
		_, block := j.BlockBounds()
		if buffers += int64(j.NumJobs*j.IODepth) * block; buffers > buffersBytesMax {
			p.Report(diag.Diagnostic{
				Code: "too-much-memory", Pos: j.Pos, Source: j.source,
				Message: fmt.Sprintf("the operations in flight of the jobs up to here need buffers of %d GiB", buffers>>30),
				Hint:    "lower bs, iodepth or numjobs",
			})
			return
		}
		clones += j.NumJobs
		files += j.NumJobs * len(j.Filenames)
		if clones > clonesMax || files > cloneFilesMax {
			p.Report(diag.Diagnostic{
				Code: "too-many-clones", Pos: j.Pos, Source: j.source,
				Message: fmt.Sprintf("more than %d clones of jobs, or %d files opened by them", clonesMax, cloneFilesMax),
			})
			return
		}
	}
}

// defaultJob has fio's defaults.
func defaultJob() Job {
	return Job{
		ReadWrite: "read", RWMixRead: 50, BlockSize: [3]int64{4096, 4096, 4096}, PercentRandom: [3]int{100, 100, 100},
		NrFiles: 1, ZoneMode: "none", IOEngine: "psync", IODepth: 1, IODepthBatch: 1, IODepthBatchCompleteMin: 1,
		Sync: "none", NumJobs: 1, Loops: 1, ThinkTimeBlocks: 1, RateProcess: "linear", ContinueOnError: "none",
		FilenameFormat:  "$jobname.$jobnum.$filenum",
		ScrambleBuffers: true, RandRepeat: true, RWSequencer: "sequential",
		Distribution: syntax.Distribution{Kind: "random"}, kbBase: 1024,
		Content: Content{CompressChunkBytes: compressChunkDefault, DedupeMode: "repeat", DedupeSetPercent: dedupeSetDefault},
		Verify:  Verification{After: true, HeaderSeed: true, WriteSequence: true},
	}
}

type parser struct {
	options Options
	syntax.Problems
	// zonesWarned says that the warning about zonesize without zonemode was reported.
	zonesWarned bool
}

// blame reports a problem of an option.
func (p *parser) blame(severity diag.Severity, o syntax.Option, code, message, hint string) {
	p.Report(diag.Diagnostic{
		Code: code, Severity: severity, Pos: o.Pos, Width: o.KeyWidth, Source: o.Source, Message: message, Hint: hint,
	})
}

// apply applies a section's options to job in order, with aliases resolved, and returns them.
func (p *parser) apply(job *Job, raw *syntax.RawSection) []syntax.Option {
	// fio applies kb_base first: it defines k in the whole section.
	for _, o := range raw.Options {
		if o.Key == "kb_base" {
			switch o.Value {
			case "1000":
				job.kbBase = 1000
			case "1024":
				job.kbBase = 1024
			}
		}
	}
	var out []syntax.Option
	seen := map[string]bool{}
	for _, o := range raw.Options {
		key := syntax.Canonical(o.Key)
		option, ok := p.option(job, o, seen[key])
		seen[key] = true
		if !ok {
			continue
		}
		out = append(out, option)
		job.keep(option)
	}
	return out
}

// keep records o as an option of j and drops an earlier one with the same key.
func (j *Job) keep(o syntax.Option) {
	j.Options = slices.DeleteFunc(j.Options, func(old syntax.Option) bool { return old.Key == o.Key })
	j.Options = append(j.Options, o)
}

// option looks up one option, reads its value into job and returns it. ok is false if key or value is invalid.
func (p *parser) option(job *Job, raw syntax.RawOption, repeated bool) (syntax.Option, bool) {
	if !raw.Literal && strings.Contains(raw.Key, "${") {
		raw.Key, _ = syntax.ExpandEnvironment(raw.Key, p.options.Env)
	}
	s, found := lookup(raw.Key)
	o := syntax.Option{
		Key: raw.Key, Bare: raw.Bare, Class: syntax.Unknown, Pos: raw.Pos,
		Source: raw.Source, KeyWidth: len(raw.Key), ValueColumn: raw.ValueColumn,
	}
	a := &arg{options: &p.options, repeated: repeated, Value: &syntax.Value{
		Problems: &p.Problems, Reading: p.options.Reading, Option: &o, Raw: raw, KB: job.kbBase, Kind: s.kind,
	}}
	if !found {
		hint := ""
		if !p.Full() && len(raw.Key) < syntax.NameBytesMax {
			if near := diag.Nearest(raw.Key, optionNames()); near != "" {
				hint = fmt.Sprintf("did you mean %s?", near)
			}
		}
		p.Report(diag.Diagnostic{
			Code: "unknown-option", Pos: raw.Pos, Width: len(raw.Key), Source: raw.Source,
			Message: fmt.Sprintf("unknown option %q", raw.Key), Hint: hint,
		})
		return o, false
	}
	o.Key, o.Class, o.Why, o.Report = s.name, s.classFor(p.options.Host), s.why, s.report
	if !a.Expand(p.options.Env, map[string]int64{
		"$pagesize": p.options.PageSize, "$mb_memory": p.options.MemoryMB, "$ncpus": p.options.CPUs,
	}) {
		return o, false
	}
	if o.Class == syntax.Refused {
		a.Problem("refused-option", fmt.Sprintf("option %q is refused: %s", s.name, o.Why), "remove it")
		return o, true
	}
	errors := a.Errors
	if p.options.Reading == syntax.Exact && !a.ReadExactly() {
		return o, false
	}
	if s.apply != nil {
		if s.class == syntax.Native && o.Class == syntax.Ignored {
			job = &Job{} // the value is checked and has no effect
		}
		s.apply(job, a)
	} else if s.note {
		a.Warn("option-ignored", fmt.Sprintf("option %q has no effect: %s", s.name, s.why), "remove it")
	}
	return o, a.Errors == errors
}

// finish sets fields that depend on several options of a job, and checks these options together.
func (p *parser) finish(j *Job, raw *syntax.RawSection, own []syntax.Option) {
	at := func(key string) (syntax.Option, bool) {
		i := slices.IndexFunc(j.Options, func(o syntax.Option) bool { return o.Key == key })
		if i < 0 {
			return syntax.Option{Pos: raw.Pos, Source: raw.Source, Key: raw.Name}, false
		}
		return j.Options[i], true
	}
	switch o, _ := at("zonesize"); {
	case j.ZoneMode != "none" || j.ZoneSize <= 0:
	case p.options.Reading == syntax.Exact:
		p.blame(diag.SeverityError, o, "zonesize-without-zonemode", "zonesize without zonemode: fio since 3.9 refuses it",
			"write zonemode=strided beside it")
	default:
		j.ZoneMode = "strided"
		if !p.zonesWarned {
			p.zonesWarned = true // once per file: X-Ray's have it in every job
			p.blame(diag.SeverityWarning, o, "zonesize-without-zonemode", "zonesize without zonemode is read as strided zones",
				"write zonemode=strided beside it; fio since 3.9 refuses the file as it is")
		}
	}
	if j.IODepthBatchCompleteMax < j.IODepthBatchCompleteMin {
		j.IODepthBatchCompleteMax = j.IODepthBatchCompleteMin
	}
	if j.IODepthLow == 0 || j.IODepthLow > j.IODepth {
		j.IODepthLow = j.IODepth
	}
	if len(j.Filenames) == 0 && strings.HasPrefix(j.Section, "/") {
		j.Filenames = []string{j.Section}
	}
	if len(j.Filenames) > 0 {
		j.NrFiles = len(j.Filenames)
	}
	if j.OpenFiles == 0 {
		j.OpenFiles = j.NrFiles
	}
	if j.Rate != [3]int64{} && j.RateIOPS != [3]float64{} {
		o, _ := at("rate_iops")
		p.blame(diag.SeverityError, o, "rate-twice", "rate and rate_iops are both set", "keep one of them")
	}
	bs := slices.IndexFunc(own, func(o syntax.Option) bool { return o.Key == "bs" })
	split := slices.ContainsFunc(own, func(o syntax.Option) bool { return o.Key == "bssplit" || o.Key == "bsrange" })
	if bs >= 0 && !split && (j.hasSplit() || j.hasRange()) {
		p.blame(diag.SeverityWarning, own[bs], "bs-without-effect", "bssplit or bsrange of [global] overrides bs of this job",
			"move bssplit or bsrange to the jobs that mean it")
	}
	p.checkAlignment(j, at)
	checkControl(j, at, p.blame)
	checkPriorities(j, at, p.blame)
}

func (j *Job) hasSplit() bool {
	return slices.ContainsFunc(j.BlockSplit[:], func(s []syntax.Split) bool { return len(s) > 0 })
}

func (j *Job) hasRange() bool { return j.BlockRange != [3][2]int64{} }

const sectorBytes = 512

// checkAlignment finds sizes that direct I/O would reject for every operation.
func (p *parser) checkAlignment(j *Job, at func(string) (syntax.Option, bool)) {
	if !j.Direct {
		return
	}
	for _, d := range j.Directions() {
		for _, size := range j.BlockSizes(d) {
			if size.Bytes%sectorBytes == 0 {
				continue
			}
			o, ok := at("bssplit")
			if !ok {
				o, ok = at("bsrange")
			}
			if !ok {
				o, _ = at("bs")
			}
			p.blame(diag.SeverityError, o, "misaligned-block",
				fmt.Sprintf("direct I/O in blocks of %d bytes, which is not a multiple of %d", size.Bytes, sectorBytes),
				"use a multiple of 512, better of 4096, or direct=0")
			return
		}
	}
	if j.Offset.Bytes%sectorBytes != 0 {
		o, _ := at("offset")
		p.blame(diag.SeverityError, o, "misaligned-offset",
			fmt.Sprintf("direct I/O from offset %d, which is not a multiple of %d", j.Offset.Bytes, sectorBytes), "")
	}
}

// Directions returns the directions of the job's operations.
func (j *Job) Directions() []Direction {
	switch strings.TrimPrefix(j.ReadWrite, "rand") {
	case "read":
		return []Direction{Read}
	case "write":
		return []Direction{Write}
	case "trim":
		return []Direction{Trim}
	case "trimwrite":
		return []Direction{Write, Trim}
	}
	return []Direction{Read, Write}
}

// Random reports whether at least some offsets are random (percentage_random), and not only sequential.
func (j *Job) Random() bool { return strings.HasPrefix(j.ReadWrite, "rand") }

// Writes reports whether the job changes its files: it writes or trims.
func (j *Job) Writes() bool { return j.ReadWrite != "read" && j.ReadWrite != "randread" }

// Reads reports whether the job reads, not counting verification of what it wrote.
func (j *Job) Reads() bool {
	switch j.ReadWrite {
	case "write", "randwrite", "trim", "randtrim", "trimwrite", "randtrimwrite":
		return false
	}
	return true
}

// BlockSizes returns the block sizes of one direction with their shares: those of bssplit, else low and high of bsrange,
// else bs.
func (j *Job) BlockSizes(d Direction) []syntax.Split {
	switch {
	case len(j.BlockSplit[d]) > 0:
		return slices.Clone(j.BlockSplit[d])
	case j.BlockRange[d][1] > 0:
		low, high := j.BlockRange[d][0], j.BlockRange[d][1]
		if low == high {
			return []syntax.Split{{Bytes: low, Percent: 100}}
		}
		return []syntax.Split{{Bytes: low, Percent: 50}, {Bytes: high, Percent: 50}}
	}
	return []syntax.Split{{Bytes: j.BlockSize[d], Percent: 100}}
}

// BlockBounds returns the smallest and the largest block of all directions of the job.
func (j *Job) BlockBounds() (smallest, largest int64) {
	directions := j.Directions()
	if j.BlockByOrder {
		directions = []Direction{Read, Write}
	}
	for _, d := range directions {
		for _, s := range j.BlockSizes(d) {
			if smallest == 0 || s.Bytes < smallest {
				smallest = s.Bytes
			}
			largest = max(largest, s.Bytes)
		}
	}
	return max(smallest, 1), max(largest, 1)
}

// Has reports whether the file sets the option, by its canonical name, for this job.
func (j *Job) Has(key string) bool {
	return slices.ContainsFunc(j.Options, func(o syntax.Option) bool { return o.Key == key })
}

// On reports whether the file switches an option on for this job, by its canonical name.
func (j *Job) On(key string) bool {
	return slices.ContainsFunc(j.Options, func(o syntax.Option) bool { return o.Key == key && o.Exact == "1" })
}
