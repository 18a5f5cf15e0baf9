package ioengine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
)

// choose gives all jobs to one back end.
func (p *program) choose(name string) error {
	kind := backend.Kind(name)
	if !slices.Contains(backend.Kinds, kind) {
		var names []string
		for _, k := range backend.Kinds {
			names = append(names, string(k))
		}
		return &diag.Error{
			Code: "unknown-backend", Message: fmt.Sprintf("choose back end %q: there is none of that name", name),
			Hint: strings.Join(names, ", "), Exit: diag.ExitUsage,
		}
	}
	for i := range p.jobs {
		if !p.jobs[i].kind.OfJob() {
			p.jobs[i].kind = kind
		}
	}
	return nil
}

// compileCalls works out what a job of one of these engines does.
func (p *program) compileCalls(j *fiojob.Job, s *jobSpec) {
	if (s.kind == backend.KindCPU || s.kind == backend.KindNames) && j.RampSize > 0 {
		p.issues.Errorf(p.optionPos(j, "ramp_size"), "endless-ramp", "job %q: ioengine=%s moves no bytes, so that ramp_size is never reached; use ramp_time",
			j.Name, j.IOEngine)
	}
	switch s.kind {
	case backend.KindCPU:
		s.reads, s.writes, s.trims, s.random = false, false, false, false
		if c := &j.Control.CPU; c.Percent <= 0 {
			p.issues.Errorf(j.Pos, "no-load", "job %q: ioengine=cpuio needs cpuload, the share of a CPU that it takes, in percent", j.Name)
		}
	case backend.KindTruncate:
		if s.reads || s.trims {
			p.issues.Errorf(p.optionPos(j, "rw"), "only-writes", "job %q: ioengine=ftruncate has writes only, and rw=%s reads or trims", j.Name, j.ReadWrite)
		}
	}
}

// namesOnly makes of a job with one of fio's engines filecreate, filestat and filedelete, or their likes for folders, what it is: one operation for
// each of its files, counted as a read of no bytes.
func (s *jobSpec) namesOnly() {
	if s.kind != backend.KindNames {
		return
	}
	s.reads, s.writes, s.trims, s.random, s.endless = true, false, false, false, false
	s.sizes = [interval.DirectionCount]pattern.Sizes{interval.Read: {Smallest: 1, Largest: 1}}
}

// submitMaxDirect is how many operations of direct access are handed over at a time. The device shall begin the first while
// the next are made, and not wait for as many as have completed together: with all at once it idles between batches. Four
// keep nearly all of what one call for many saves.
const submitMaxDirect = 4

// submitMax is how many operations of a lane are made before they are handed over.
func (s *jobSpec) submitMax() int {
	if s.job.Direct && (s.kind == backend.KindUring || s.kind == backend.KindLibaio) {
		return submitMaxDirect
	}
	return s.depth
}
