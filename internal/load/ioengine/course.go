package ioengine

import (
	"math"

	"github.com/braggdev/bragg/internal/load"
)

// newSequence makes the operations of one clone. Those of a replay come from a log, and its streams have keys alone.
func newSequence(spec *cloneSpec, job *jobSpec) sequence {
	q := sequence{active: job.draws(), left: unbounded, mixKey: load.Key(spec.key, keyMix)}
	if job.replay != nil {
		q.active = job.active()
	}
	if spec.count > 0 {
		q.left = spec.count
	}
	q.mixRead = uint64(min(max(job.job.RWMixRead, 0), 100))
	for i := range spec.streams {
		q.streams = append(q.streams, newStream(&spec.streams[i], job))
	}
	q.files = newFileOrder(job.job.Control.FileService, job.job.OpenFiles, len(q.streams), load.Key(spec.key, keyFiles))
	return q
}

func newStream(spec *streamSpec, job *jobSpec) stream {
	s := stream{device: int32(spec.device), left: unbounded, contentKey: load.Key(spec.key, keyContent), priorityKey: load.Key(spec.key, keyPriority)}
	if job.replay != nil {
		return s
	}
	if spec.amount > 0 {
		s.left = spec.amount
	}
	s.passes = newPasses(spec, job)
	shared := job.reads && job.writes && job.sizes[0].equal(&job.sizes[1])
	var both *deck
	for d, active := range job.draws() {
		if !active {
			continue
		}
		o := job.order(d, spec.region, load.Key(spec.key, keyHot))
		o.real = spec.real
		var own *deck
		if job.mapped(d, &o) {
			if own = both; own == nil {
				own = newDeck(spec.region.window(), &o.sizes, load.Key(spec.key, uint64(keyDeck+job.drawnAs(d))))
			}
			if shared {
				both = own
			}
		}
		s.cursors[d] = newCursor(o, own, job.drawnAs(d) == 0, load.Key(spec.key, uint64(keyCursor+job.drawnAs(d))))
	}
	return s
}

func newPasses(spec *streamSpec, job *jobSpec) passes {
	p := passes{bytes: spec.pass, left: spec.pass, more: int64(max(1, job.job.Loops)) - 1}
	switch {
	case spec.amount <= 0:
		p.endless, p.bytes, p.left = true, 0, unbounded
	case job.job.IOSize.Set:
		p.more = math.MaxInt64
	}
	return p
}
