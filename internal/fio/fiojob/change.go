package fiojob

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Clone returns a Job that shares no slice with j.
func (j *Job) Clone() Job {
	c := *j
	c.Filenames = slices.Clone(j.Filenames)
	c.Options = slices.Clone(j.Options)
	for d := range c.BlockSplit {
		c.BlockSplit[d] = slices.Clone(j.BlockSplit[d])
		c.Distribution.Zones[d] = slices.Clone(j.Distribution.Zones[d])
	}
	c.Content.Pattern = slices.Clone(j.Content.Pattern)
	return c
}

// Bare returns a job with only the name and position of j.
func (j *Job) Bare() Job {
	bare := defaultJob()
	bare.Name, bare.Section, bare.Pos, bare.source = j.Name, j.Section, j.Pos, j.source
	return bare
}

// With returns the job with one more option, or an error when key or value cannot be understood.
func (j Job) With(key, value string) (Job, error) {
	p := &parser{}
	j = j.Clone()
	o, ok := p.option(&j, syntax.RawOption{Key: key, Value: value}, false)
	if !ok || p.List.HasErrors() {
		return j, fmt.Errorf("set option %s=%s: %w", key, value, p.List.Err())
	}
	o.Pos = j.Pos
	j.keep(o)
	return j, nil
}

// Set replaces the text of an option after its typed value has changed.
func (j *Job) Set(key, exact string) {
	class, why := ClassOf(key)
	for i := range j.Options {
		if j.Options[i].Key == key {
			o := j.Options[i]
			o.Value, o.Exact, o.Bare = exact, exact, false
			j.Options[i] = o
			return
		}
	}
	j.Options = append(j.Options, syntax.Option{Key: key, Value: exact, Exact: exact, Class: class, Why: why, Pos: j.Pos})
}

// Each returns a File whose jobs are replaced by the results of change.
func (f *File) Each(change func(Job) Job) *File {
	out := *f
	out.jobs = make([]Job, len(f.jobs))
	for i, j := range f.jobs {
		out.jobs[i] = change(j)
	}
	return &out
}

// WithRuntime returns the job bounded to d; it keeps a shorter runtime. 0 changes nothing.
func (j Job) WithRuntime(d time.Duration) Job {
	if d > 0 && (j.Runtime == 0 || d < j.Runtime) {
		j = j.Clone()
		j.Runtime = d
		j.Set("runtime", syntax.FormatTime(d))
	}
	return j
}

// WithRuntime returns the file with every job bounded to d; 0 changes nothing.
func (f *File) WithRuntime(d time.Duration) *File {
	return f.Each(func(j Job) Job { return j.WithRuntime(d) })
}

// WithDepth returns the file with every job at this queue depth.
func (f *File) WithDepth(depth int) *File {
	return f.Each(func(j Job) Job {
		j = j.Clone()
		j.IODepth, j.IODepthLow = depth, depth
		j.Set("iodepth", strconv.Itoa(depth))
		return j
	})
}

// ContinueOnErrors returns the file with continue_on_error=all for jobs that do not set it, as X-Ray does: a workload
// outlives the failures that a scenario causes, and the errors are counted.
func (f *File) ContinueOnErrors() *File {
	return f.Each(func(j Job) Job {
		if j.Has("continue_on_error") {
			return j
		}
		j = j.Clone()
		j.ContinueOnError = "all"
		j.Set("continue_on_error", "all")
		return j
	})
}
