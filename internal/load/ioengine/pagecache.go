package ioengine

import (
	"slices"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
)

// noteCached notes that jobs read what they want to stay in the page cache.
func (in *instance) noteCached() {
	for i := range in.program.Jobs {
		option := KeepsCached(&in.program.Jobs[i].Fio)
		note := interval.EngineNote{Code: interval.NoteCached, Text: "reads may come from the page cache (" + option + ")"}
		if option != "" && !slices.Contains(in.notes, note) {
			in.notes = append(in.notes, note)
		}
	}
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
				_ = f.Sync(true) // whoever wrote it has seen its errors
				f.Forget()
			}
		}
	}
}
