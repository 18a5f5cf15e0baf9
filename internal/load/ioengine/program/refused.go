package program

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

// FallBack gives jobs that want io_uring to another back end where the kernel refuses it: direct access to libaio, all
// others to psync, because libaio would block on them. With psync threads serve the queue depth.
func (p *Program) FallBack() {
	for i := range p.Jobs {
		if p.Jobs[i].Kind != backend.KindUring {
			continue
		}
		if p.Refused == nil {
			if p.Refused = uringRefused(); p.Refused == nil {
				return
			}
		}
		p.Jobs[i].Kind = backend.KindPsync
		if j := &p.Jobs[i]; j.Fio.Direct && j.Depth > 1 && backend.ProbeLibaio() == nil {
			j.Kind = backend.KindLibaio
		}
	}
}

var errUringOff = errors.New(uringOffVariable + "=off")

// Notes says what comes out otherwise than the job file asks for.
func (p *Program) Notes() []string {
	notes := p.contentNotes()
	for i := range p.Jobs {
		spec := &p.Jobs[i]
		if spec.Kind.Blocks() && spec.Depth > backend.PsyncThreadsMax {
			notes = append(notes, fmt.Sprintf("job %q: %d threads serve the queue depth of %d", spec.Fio.Name, backend.PsyncThreadsMax, spec.Depth))
		}
	}
	for i := range p.Jobs {
		j := &p.Jobs[i].Fio
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

// Engine describes the back ends in use.
func (p *Program) Engine() interval.Engine {
	e := interval.Engine{Name: "native", Loop: interval.LoopClosed}
	if slices.Contains(p.OpenLoop[:], true) {
		e.Loop = interval.LoopOpen
	}
	for i := range p.Jobs {
		if kind := string(p.Jobs[i].Kind); !slices.Contains(e.Backends, kind) {
			e.Backends = append(e.Backends, kind)
		}
	}
	if p.Refused != nil {
		e.Fallback = &interval.Fallback{From: string(backend.KindUring), Why: p.Refused.Error()}
	}
	return e
}

// contentNotes says what each job writes; jobs that write alike are named together.
func (p *Program) contentNotes() []string {
	var texts []string
	jobs := map[string][]string{}
	for i := range p.Jobs {
		if spec := &p.Jobs[i]; spec.Writes && spec.Kind != backend.KindNull && !spec.VerifiesOnly() {
			text := spec.Content.String()
			if jobs[text] == nil {
				texts = append(texts, text)
			}
			jobs[text] = append(jobs[text], strconv.Quote(spec.Fio.Name))
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
