package ioengine

import (
	"fmt"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
)

// unwrittenNoticed is the share of what a load reads on one device from which a note says that it was never written.
const unwrittenNoticed = 0.01

// noteUnwritten notes which devices answer reads without work of a medium, because nothing was ever written there. What
// jobs of this load write before, behind a stonewall, counts as written.
func (in *instance) noteUnwritten() {
	for device := range in.program.Workload.Devices {
		extents, bytes := in.program.ReadsOf(device)
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

// portion says a share in few words, so that VMs that differ by little are reported alike.
func portion(share float64) string {
	switch {
	case share > 0.995:
		return "all"
	case share >= 0.5:
		return "most"
	}
	return "a part"
}
