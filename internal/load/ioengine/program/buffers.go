package program

import (
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/content"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// readBuffersMax bounds the buffers of a clone that only reads: what is read is thrown away, so slots may share them.
const readBuffersMax = 64 << 20

// BufferBytes is the largest block, in whole pages.
func (s *Job) BufferBytes() int64 {
	const page = 4096
	return (s.BlockMax() + page - 1) / page * page
}

// BufferCount is how many buffers a clone has: one for each operation that writes.
func (s *Job) BufferCount() int64 {
	switch {
	case s.Kind.Dataless() || s.Trims && !s.Writes && !s.Reads:
		return 0
	case s.Writes || s.Verify != nil:
		return int64(s.Places())
	}
	return min(int64(s.Depth), max(1, readBuffersMax/s.BufferBytes()))
}

// compileContent works out what a job writes.
func (p *Program) compileContent(s *Job) {
	if !s.Writes {
		return
	}
	s.Content = content.Of(&s.Fio, s.Sizes[interval.Write].Smallest)
	if c := &s.Fio.Content; c.DedupePercent > 0 && c.DedupeMode == "working_set" && c.DedupeSetPercent == 0 {
		p.Issues.Errorf(p.optionPos(&s.Fio, "dedupe_working_set_percentage"), "empty-working-set",
			"job %q: duplicates are drawn from a working set of 0 %%", s.Fio.Name)
	}
}

// sizeWorkingSet gives the set that duplicates are drawn from its size: a share of the job's bytes.
func sizeWorkingSet(s *Job) {
	var bytes int64
	for _, stream := range s.Clones[0].Streams {
		bytes += stream.Region.Used()
	}
	s.Content.SizeSet(&s.Fio.Content, bytes)
}

// Places is how many slots a clone has: as many as its queue is deep, or those of a chain.
func (s *Job) Places() int {
	if !s.Chains() {
		return s.Depth
	}
	if s.Writes {
		return int(min(backend.ChainMax, max(1, backend.ChainBytesMax/s.BufferBytes())))
	}
	return backend.ChainMax
}

// Chains reports whether operations of the job can be made before those in front of them have ended: nothing in it depends
// on when operations end, or on what they bring.
func (s *Job) Chains() bool {
	j := &s.Fio
	if !backend.ChainsPossible || s.Kind != backend.KindPsync && s.Kind != backend.KindPvsync2 || s.Depth != 1 || j.Direct || s.Trims {
		return false
	}
	if s.Verify != nil || s.Replay != nil || s.Priorities != nil || j.SerializeOverlap || j.ThinkTime > 0 || s.Watched() {
		return false
	}
	for i := range s.Clones {
		if s.Clones[i].Rate != [interval.DirectionCount]float64{} {
			return false
		}
	}
	return true
}

// Advice is which order of operations the kernel is advised to expect.
func (s *Job) Advice() string {
	switch {
	case s.Fio.Advice != "":
		return s.Fio.Advice
	case s.Fio.Random():
		return fiojob.AdviceRandom
	}
	return fiojob.AdviceSequential
}

// DropsCache reports whether a job takes its files out of the page cache before each pass: fio's invalidate, which pre_read
// clears. Without the page cache there is nothing to drop.
func (s *Job) DropsCache() bool {
	return !s.Fio.Direct && !s.Fio.Layout.KeepCache && !s.Fio.Control.PreRead && !s.Dataless
}

// Own reports whether a clone needs threads that no other clone uses.
func (s *Job) Own(clone int) bool {
	return thread.SettingsOf(&s.Fio.Control, clone) != thread.Settings{} || s.Fio.Control.ThinkTimeSpin > 0
}

// Bursts reports whether pauses come after a time of operations and not after a number of them. fio's thinktime_blocks holds
// beside it where it is set.
func (s *Job) Bursts() bool {
	return s.Fio.Control.ThinkTimeIOTime > 0 && !s.Fio.Has("thinktime_blocks")
}

// Watched reports whether a job bounds latency or rates, or searches a queue depth.
func (s *Job) Watched() bool {
	c := &s.Fio.Control
	for d, active := range s.Active() {
		if active && (c.RateMin[d] > 0 || c.RateIOPSMin[d] > 0) {
			return true
		}
	}
	return c.LatencyMax > 0 || c.LatencyTarget > 0
}
