package program

import (
	"math"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
)

// NewSequence makes the operations of one clone. Those of a replay come from a log, and its streams have keys alone.
func NewSequence(spec *Clone, job *Job) pattern.Sequence {
	q := pattern.Sequence{Active: job.Draws(), Left: pattern.Unbounded, MixKey: load.Key(spec.Key, pattern.KeyMix)}
	if job.Replay != nil {
		q.Active = job.Active()
	}
	if spec.Count > 0 {
		q.Left = spec.Count
	}
	q.MixRead = uint64(min(max(job.Fio.RWMixRead, 0), 100))
	for i := range spec.Streams {
		q.Streams = append(q.Streams, newStream(&spec.Streams[i], job))
	}
	q.Files = pattern.NewFileOrder(job.Fio.Control.FileService, job.Fio.OpenFiles, len(q.Streams), load.Key(spec.Key, pattern.KeyFiles))
	return q
}

func newStream(spec *streamSpec, job *Job) pattern.Stream {
	s := pattern.Stream{Device: int32(spec.Device), Left: pattern.Unbounded, ContentKey: load.Key(spec.key, pattern.KeyContent), PriorityKey: load.Key(spec.key, pattern.KeyPriority)}
	if job.Replay != nil {
		return s
	}
	if spec.Amount > 0 {
		s.Left = spec.Amount
	}
	s.Passes = newPasses(spec, job)
	s.One = job.Fio.Places.OnePosition && job.Reads && job.Writes
	shared := job.Reads && job.Writes && job.Sizes[0].Equal(&job.Sizes[1])
	var both *pattern.Deck
	for d, active := range job.Draws() {
		if !active {
			continue
		}
		o := job.order(d, spec.Region, load.Key(spec.key, pattern.KeyHot))
		o.Real = spec.real
		var own *pattern.Deck
		if job.mapped(d, &o) {
			if own = both; own == nil {
				own = pattern.NewDeck(spec.Region.Window(), &o.Sizes, load.Key(spec.key, uint64(pattern.KeyDeck+job.drawnAs(d))))
			}
			if shared {
				both = own
			}
		}
		s.Cursors[d] = pattern.NewCursor(o, own, job.drawnAs(d) == 0, load.Key(spec.key, uint64(pattern.KeyCursor+job.drawnAs(d))))
	}
	return s
}

func newPasses(spec *streamSpec, job *Job) pattern.Passes {
	p := pattern.Passes{Bytes: spec.pass, Left: spec.pass, More: int64(max(1, job.Fio.Loops)) - 1}
	switch {
	case spec.Amount <= 0:
		p.Endless, p.Bytes, p.Left = true, 0, pattern.Unbounded
	case job.Fio.IOSize.Set:
		p.More = math.MaxInt64
	}
	return p
}
