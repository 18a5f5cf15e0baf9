package ioengine

import (
	"math"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
)

// newSequence makes the operations of one clone. Those of a replay come from a log, and its streams have keys alone.
func newSequence(spec *cloneSpec, job *jobSpec) pattern.Sequence {
	q := pattern.Sequence{Active: job.draws(), Left: pattern.Unbounded, MixKey: load.Key(spec.key, pattern.KeyMix)}
	if job.replay != nil {
		q.Active = job.active()
	}
	if spec.count > 0 {
		q.Left = spec.count
	}
	q.MixRead = uint64(min(max(job.job.RWMixRead, 0), 100))
	for i := range spec.streams {
		q.Streams = append(q.Streams, newStream(&spec.streams[i], job))
	}
	q.Files = pattern.NewFileOrder(job.job.Control.FileService, job.job.OpenFiles, len(q.Streams), load.Key(spec.key, pattern.KeyFiles))
	return q
}

func newStream(spec *streamSpec, job *jobSpec) pattern.Stream {
	s := pattern.Stream{Device: int32(spec.device), Left: pattern.Unbounded, ContentKey: load.Key(spec.key, pattern.KeyContent), PriorityKey: load.Key(spec.key, pattern.KeyPriority)}
	if job.replay != nil {
		return s
	}
	if spec.amount > 0 {
		s.Left = spec.amount
	}
	s.Passes = newPasses(spec, job)
	shared := job.reads && job.writes && job.sizes[0].Equal(&job.sizes[1])
	var both *pattern.Deck
	for d, active := range job.draws() {
		if !active {
			continue
		}
		o := job.order(d, spec.region, load.Key(spec.key, pattern.KeyHot))
		o.Real = spec.real
		var own *pattern.Deck
		if job.mapped(d, &o) {
			if own = both; own == nil {
				own = pattern.NewDeck(spec.region.Window(), &o.Sizes, load.Key(spec.key, uint64(pattern.KeyDeck+job.drawnAs(d))))
			}
			if shared {
				both = own
			}
		}
		s.Cursors[d] = pattern.NewCursor(o, own, job.drawnAs(d) == 0, load.Key(spec.key, uint64(pattern.KeyCursor+job.drawnAs(d))))
	}
	return s
}

func newPasses(spec *streamSpec, job *jobSpec) pattern.Passes {
	p := pattern.Passes{Bytes: spec.pass, Left: spec.pass, More: int64(max(1, job.job.Loops)) - 1}
	switch {
	case spec.amount <= 0:
		p.Endless, p.Bytes, p.Left = true, 0, pattern.Unbounded
	case job.job.IOSize.Set:
		p.More = math.MaxInt64
	}
	return p
}
