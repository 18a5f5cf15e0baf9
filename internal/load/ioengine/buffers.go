package ioengine

import (
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/content"
)

// readBuffersMax bounds the buffers of a clone that only reads: what is read is thrown away, so slots may share them.
const readBuffersMax = 64 << 20

// bufferBytes is the largest block, in whole pages.
func (s *jobSpec) bufferBytes() int64 {
	const page = 4096
	return (s.blockMax() + page - 1) / page * page
}

// bufferCount is how many buffers a clone has: one for each operation that writes.
func (s *jobSpec) bufferCount() int64 {
	switch {
	case s.kind.Dataless() || s.trims && !s.writes && !s.reads:
		return 0
	case s.writes || s.verify != nil:
		return int64(s.places())
	}
	return min(int64(s.depth), max(1, readBuffersMax/s.bufferBytes()))
}

// compileContent works out what a job writes.
func (p *program) compileContent(s *jobSpec) {
	if !s.writes {
		return
	}
	s.content = content.Of(&s.job, s.sizes[interval.Write].Smallest)
	if c := &s.job.Content; c.DedupePercent > 0 && c.DedupeMode == "working_set" && c.DedupeSetPercent == 0 {
		p.issues.Errorf(p.optionPos(&s.job, "dedupe_working_set_percentage"), "empty-working-set",
			"job %q: duplicates are drawn from a working set of 0 %%", s.job.Name)
	}
}

// sizeWorkingSet gives the set that duplicates are drawn from its size: a share of the job's bytes.
func (s *jobSpec) sizeWorkingSet() {
	var bytes int64
	for _, stream := range s.clones[0].streams {
		bytes += stream.region.Used()
	}
	s.content.SizeSet(&s.job.Content, bytes)
}

// places is how many slots a clone has: as many as its queue is deep, or those of a chain.
func (s *jobSpec) places() int {
	if !s.chains() {
		return s.depth
	}
	if s.writes {
		return int(min(backend.ChainMax, max(1, backend.ChainBytesMax/s.bufferBytes())))
	}
	return backend.ChainMax
}

// chains tells whether operations of the job can be made before those in front of them have ended: nothing in it depends
// on when operations end, or on what they bring.
func (s *jobSpec) chains() bool {
	j := &s.job
	if !backend.ChainsPossible || s.kind != backend.KindPsync && s.kind != backend.KindPvsync2 || s.depth != 1 || j.Direct || s.trims {
		return false
	}
	if s.verify != nil || s.replay != nil || s.priorities != nil || j.SerializeOverlap || j.ThinkTime > 0 || newWatch(s) != nil {
		return false
	}
	for i := range s.clones {
		if s.clones[i].rate != [interval.DirectionCount]float64{} {
			return false
		}
	}
	return true
}

// advice is which order of operations the kernel is told to expect.
func (s *jobSpec) advice() string {
	switch {
	case s.job.Advice != "":
		return s.job.Advice
	case s.job.Random():
		return fiojob.AdviceRandom
	}
	return fiojob.AdviceSequential
}
