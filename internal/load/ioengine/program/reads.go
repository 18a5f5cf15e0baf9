package program

import (
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
)

// ReadsOf returns the parts of a device that are read before any job between earlier stonewalls wrote to it, and how many
// bytes they have.
func (p *Program) ReadsOf(device int) (extents []extent.Extent, bytes int64) {
	written := p.firstWrite(device)
	for i := range p.Jobs {
		job := &p.Jobs[i]
		if !job.Reads || job.Kind.Dataless() || written >= 0 && written < job.Phase {
			continue
		}
		for _, c := range job.Clones {
			for _, s := range c.Streams {
				if s.Device == device {
					extents = append(extents, extentsOf(&s.Region)...)
				}
			}
		}
	}
	return extents, extent.Bytes(extents)
}

// firstWrite returns the first phase in which a device is written to, -1 where it never is.
func (p *Program) firstWrite(device int) int {
	for i := range p.Jobs { // in the order of phases
		job := &p.Jobs[i]
		for _, c := range job.Clones {
			for _, s := range c.Streams {
				if s.Device == device && job.Writes {
					return job.Phase
				}
			}
		}
	}
	return -1
}

// zonesListedMax bounds how many zones are kept apart; beyond that the whole region counts.
const zonesListedMax = 4096

func extentsOf(r *pattern.Region) []extent.Extent {
	if r.Zones <= 1 || r.Zones > zonesListedMax {
		return []extent.Extent{{Offset: r.Start, Length: r.End() - r.Start}}
	}
	var all []extent.Extent
	for i := range r.Zones {
		all = append(all, extent.Extent{Offset: r.Start + i*r.ZoneStride, Length: r.Window()})
	}
	return all
}

// KeepsCached returns the option with which a job wants its reads to be answered from the page cache, "" where it does not.
func KeepsCached(j *fiojob.Job) string {
	kind, _, _ := backend.Of(j.IOEngine)
	switch {
	case !j.Reads() || j.Direct || kind.Dataless() || kind == backend.KindNull:
		return ""
	case j.Control.PreRead:
		return "pre_read=1"
	case j.Layout.KeepCache:
		return "invalidate=0"
	}
	return ""
}
