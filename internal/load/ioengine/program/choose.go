package program

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

// Choose gives all jobs to one back end.
func (p *Program) Choose(name string) error {
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
	for i := range p.Jobs {
		if !p.Jobs[i].Kind.OfJob() {
			p.Jobs[i].Kind = kind
		}
	}
	return nil
}

// compileCalls works out what a job of one of these engines does.
func (p *Program) compileCalls(j *fiojob.Job, s *Job) {
	if (s.Kind == backend.KindCPU || s.Kind == backend.KindNames) && j.RampSize > 0 {
		p.Issues.Errorf(p.optionPos(j, "ramp_size"), "endless-ramp", "job %q: ioengine=%s moves no bytes, so that ramp_size is never reached; use ramp_time",
			j.Name, j.IOEngine)
	}
	switch s.Kind {
	case backend.KindCPU:
		s.Reads, s.Writes, s.Trims, s.Random = false, false, false, false
		if c := &j.Control.CPU; c.Percent <= 0 {
			p.Issues.Errorf(j.Pos, "no-load", "job %q: ioengine=cpuio needs cpuload, the share of a CPU that it takes, in percent", j.Name)
		}
	case backend.KindTruncate:
		if s.Reads || s.Trims {
			p.Issues.Errorf(p.optionPos(j, "rw"), "only-writes", "job %q: ioengine=ftruncate has writes only, and rw=%s reads or trims", j.Name, j.ReadWrite)
		}
	}
}

// namesOnly makes of a job with one of fio's engines filecreate, filestat and filedelete, or their likes for folders, what it is: one operation for
// each of its files, counted as a read of no bytes.
func namesOnly(s *Job) {
	if s.Kind != backend.KindNames {
		return
	}
	s.Reads, s.Writes, s.Trims, s.Random, s.endless = true, false, false, false, false
	s.Sizes = [interval.DirectionCount]pattern.Sizes{interval.Read: {Smallest: 1, Largest: 1}}
}

// submitMaxDirect is how many operations of direct access are handed over at a time. The device shall begin the first while
// the next are made, and not wait for as many as have completed together: with all at once it idles between batches. Four
// keep nearly all of what one call for many saves.
const submitMaxDirect = 4

// SubmitMax is how many operations of a lane are made before they are handed over.
func (s *Job) SubmitMax() int {
	if s.Fio.Direct && (s.Kind == backend.KindUring || s.Kind == backend.KindLibaio) {
		return submitMaxDirect
	}
	return s.Depth
}
