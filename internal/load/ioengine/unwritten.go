package ioengine

import (
	"fmt"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
)

// unwrittenNoticed is the share of what a load reads on one device from which a note says that it was never written.
const unwrittenNoticed = 0.01

// noteUnwritten notes which devices answer reads without work of a medium, because nothing was ever written there. What
// jobs of this load write before, behind a stonewall, counts as written.
func (in *instance) noteUnwritten() {
	for device := range in.program.Workload.Devices {
		extents, bytes := in.readsOf(device)
		var f *backend.File
		for _, o := range in.opened {
			if o.device == in.names[device] {
				f = o.file
			}
		}
		if f == nil || bytes == 0 {
			continue
		}
		// What cannot be found out is not told: a file system that knows no holes.
		unwritten, err := blockdev.ReadWarning(f.Handle, extents)
		if share := float64(unwritten) / float64(bytes); err == nil && share >= unwrittenNoticed {
			in.notes = append(in.notes, interval.EngineNote{Code: interval.NoteUnwritten, Device: in.names[device],
				Text: fmt.Sprintf("%s of what is read of %s was never written", portion(share), in.names[device])})
		}
	}
}

// portion says a share in few words, so that VMs that differ by little are told alike.
func portion(share float64) string {
	switch {
	case share > 0.995:
		return "all"
	case share >= 0.5:
		return "most"
	}
	return "a part"
}

// readsOf returns the parts of a device that are read before any job between earlier stonewalls wrote to it, and how many
// bytes they have.
func (in *instance) readsOf(device int) (extents []blockdev.Extent, bytes int64) {
	written := in.firstWrite(device)
	for i := range in.program.Jobs {
		job := &in.program.Jobs[i]
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
	return extents, blockdev.TotalBytes(extents)
}

// firstWrite returns the first phase in which a device is written to, -1 where it never is.
func (in *instance) firstWrite(device int) int {
	for i := range in.program.Jobs { // in the order of phases
		job := &in.program.Jobs[i]
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

// zonesListedMax bounds how many zones are told apart; of more the whole region counts.
const zonesListedMax = 4096

func extentsOf(r *pattern.Region) []blockdev.Extent {
	if r.Zones <= 1 || r.Zones > zonesListedMax {
		return []blockdev.Extent{{Offset: r.Start, Length: r.End() - r.Start}}
	}
	var all []blockdev.Extent
	for i := range r.Zones {
		all = append(all, blockdev.Extent{Offset: r.Start + i*r.ZoneStride, Length: r.Window()})
	}
	return all
}
