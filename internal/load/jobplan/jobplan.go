// Package jobplan derives the facts of a job that every generator of job files plans alike, and that audits need later.
//
//	fiojob.Job, the ranges of its clones ──Of──▶ load.JobPlan without names of block sizes, rates and sizes
//
// It opens nothing. What a generator does differently from the job file (a queue depth without effect) the generator sets itself.
package jobplan

import (
	"slices"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load"
)

// synchronous lists fio's engines whose jobs have one operation in flight whatever their iodepth.
var synchronous = []string{"", "sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"}

// Of returns the facts of a job. Of the ranges of its clones, only the offsets count.
func Of(j *fiojob.Job, clones []extent.Extent) load.JobPlan {
	p := load.JobPlan{
		Name: j.Name, Pattern: j.ReadWrite, QueueDepth: max(1, j.IODepth), DepthAsked: max(1, j.IODepth), Clones: max(1, j.NumJobs),
		Reads: j.Reads(), Writes: j.Writes(), Direct: j.Direct,
		Flushes:    j.Sync != "none" && j.Sync != "" || j.FSync > 0 || j.FDataSync > 0 || j.SyncFileRange != (fiojob.SyncFileRange{}),
		AlignBytes: aligned(j, clones), SameRegion: sameRegion(j), NoRandomMap: j.NoRandomMap,
		Linear: j.RateProcess != "poisson" && (j.Rate != [3]int64{} || j.RateIOPS != [3]float64{}),
		Pauses: j.ThinkTime > 0 || j.StartDelay > 0 || j.Stonewall || j.IODepthLow < j.IODepth || j.Replay.Logs != nil ||
			j.RampTime > 0 || j.RampSize > 0,
	}
	if slices.Contains(synchronous, j.IOEngine) {
		p.QueueDepth = 1
	}
	p.BlockMin, p.BlockMax = j.BlockBounds()
	if j.Writes() {
		p.Reducible = reducible(j)
	}
	return p
}

// aligned returns the largest power of two that divides all offsets and lengths of operations.
func aligned(j *fiojob.Job, clones []extent.Extent) int64 {
	bits := int64(0)
	for _, d := range j.Directions() {
		for _, s := range j.BlockSizes(d) {
			bits |= s.Bytes
		}
		bits |= j.BlockAlign[d]
	}
	if j.BlockUnaligned {
		bits |= 512
	}
	for _, e := range clones {
		bits |= e.Offset
	}
	return bits & -bits
}

// sameRegion reports whether several clones go through one range in order: all but the first find what they read in caches.
func sameRegion(j *fiojob.Job) bool {
	return j.NumJobs > 1 && !j.Random() && !j.OffsetIncrement.Set && j.Directory == "" && len(j.Filenames) > 0
}

// reducible returns the share of written data that a storage system with compression and deduplication need not store.
func reducible(j *fiojob.Job) float64 {
	c := &j.Content
	switch {
	case c.CompressPercent == 0 && len(c.Pattern) > 0, c.CompressPercent == 0 && c.DedupePercent == 0 && j.ZeroBuffers:
		return 1
	}
	return 1 - float64(100-c.CompressPercent)*float64(100-c.DedupePercent)/1e4
}
