package ioengine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
)

// uringOffVariable makes this process behave as if the kernel refused io_uring.
const uringOffVariable = "BRAGG_IO_URING"

// fallBack gives jobs that want io_uring to another back end where the kernel refuses it: direct access to libaio, all
// others to psync, because libaio would block on them. With psync threads serve the queue depth.
func (p *program) fallBack() {
	for i := range p.jobs {
		if p.jobs[i].kind != backend.KindUring {
			continue
		}
		if p.refused == nil {
			if p.refused = uringRefused(); p.refused == nil {
				return
			}
		}
		p.jobs[i].kind = backend.KindPsync
		if j := &p.jobs[i]; j.job.Direct && j.depth > 1 && backend.ProbeLibaio() == nil {
			j.kind = backend.KindLibaio
		}
	}
}

var errUringOff = errors.New(uringOffVariable + "=off")

// uringError is a ring that could not be made for a worker.
type uringError struct{ error }

func (e *uringError) Unwrap() error { return e.error }

// notes says what comes out otherwise than the job file asks for.
func (p *program) notes() []string {
	notes := p.contentNotes()
	for i := range p.jobs {
		spec := &p.jobs[i]
		if spec.kind.Blocks() && spec.depth > backend.PsyncThreadsMax {
			notes = append(notes, fmt.Sprintf("job %q: %d threads serve the queue depth of %d", spec.job.Name, backend.PsyncThreadsMax, spec.depth))
		}
	}
	for i := range p.jobs {
		j := &p.jobs[i].job
		for key, value := range map[string]int{
			"iodepth_batch": j.IODepthBatch, "iodepth_batch_complete_min": j.IODepthBatchCompleteMin,
			"iodepth_batch_complete_max": j.IODepthBatchCompleteMax,
		} {
			if value > 1 {
				notes = append(notes, fmt.Sprintf("job %q: %s=%d has no effect: whatever is ready is submitted and reaped at once",
					j.Name, key, value))
			}
		}
	}
	slices.Sort(notes)
	return notes
}

func uringRefused() error {
	if os.Getenv(uringOffVariable) == "off" {
		return errUringOff
	}
	return backend.ProbeUring()
}

// engine describes the back ends in use.
func (p *program) engine() interval.Engine {
	e := interval.Engine{Name: "native"}
	for i := range p.jobs {
		if kind := string(p.jobs[i].kind); !slices.Contains(e.Backends, kind) {
			e.Backends = append(e.Backends, kind)
		}
	}
	if p.refused != nil {
		e.Fallback = &interval.Fallback{From: string(backend.KindUring), Why: p.refused.Error()}
	}
	return e
}

// contentNotes says what each job writes; jobs that write alike are named together.
func (p *program) contentNotes() []string {
	var texts []string
	jobs := map[string][]string{}
	for i := range p.jobs {
		if spec := &p.jobs[i]; spec.writes && spec.kind != backend.KindNull && !spec.verifiesOnly() {
			text := spec.content.String()
			if jobs[text] == nil {
				texts = append(texts, text)
			}
			jobs[text] = append(jobs[text], strconv.Quote(spec.job.Name))
		}
	}
	var notes []string
	for _, text := range texts {
		word := "job"
		if len(jobs[text]) > 1 {
			word = "jobs"
		}
		notes = append(notes, fmt.Sprintf("%s %s: %s", word, strings.Join(jobs[text], ", "), text))
	}
	return notes
}
