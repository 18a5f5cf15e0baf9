package ioengine

import (
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
)

// noteCached notes that jobs read what they want to stay in the page cache.
func (in *instance) noteCached() {
	for i := range in.program.Jobs {
		option := program.KeepsCached(&in.program.Jobs[i].Fio)
		note := interval.EngineNote{Code: interval.NoteCached, Text: "reads may come from the page cache (" + option + ")"}
		if option != "" && !slices.Contains(in.notes, note) {
			in.notes = append(in.notes, note)
		}
	}
}

// dropCaches takes files out of the page cache before the jobs of some workers begin. What is not written yet is written
// first, because it would stay.
func dropCaches(workers []*worker) {
	dropped := map[*backend.File]bool{}
	for _, w := range workers {
		for i := range w.lanes {
			l := &w.lanes[i]
			for k := range l.Targets {
				f := l.Targets[k].File
				if f == nil || f.Direct || dropped[f] || !l.Job.DropsCache() {
					continue
				}
				dropped[f] = true
				_ = f.Sync(true) // the writer has seen its errors
				f.Forget()
			}
		}
	}
}
