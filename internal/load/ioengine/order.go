package ioengine

import (
	"github.com/braggdev/bragg/internal/fiojob"
	"github.com/braggdev/bragg/internal/interval"
)

// order works out where the operations of one direction go in a region.
func (s *jobSpec) order(direction int, r region, key uint64) order {
	j := &s.job
	o := order{region: r, sizes: s.sizes[direction], align: s.align(direction)}
	if !s.random {
		o.skip = j.Sequence
		return o
	}
	o.percent = min(max(j.PercentRandom[direction], 0), 100)
	if j.Sequence > 1 {
		o.hold, o.same = j.Sequence, j.RWSequencer == "identical"
	}
	blocks := uint64((r.window()-o.sizes.smallest)/o.align) + 1
	switch j.Distribution.Kind {
	case "zipf":
		o.hot = newZipf(j.Distribution.Parameter, blocks, key)
	case "pareto":
		o.hot = newPareto(j.Distribution.Parameter, blocks, key)
	}
	return o
}

// align is what random offsets are a multiple of, from the start of their region.
func (s *jobSpec) align(direction int) int64 {
	if a := s.job.BlockAlign[direction]; a > 0 {
		return a
	}
	return s.sizes[direction].smallest
}

// mapped tells whether each block shall be touched exactly once per pass. As in fio, norandommap, an alignment of its
// own and a distribution that is not uniform draw freely; here also operations that are only partly random, because
// the sequential ones would touch blocks again anyway.
func (s *jobSpec) mapped(direction int, o *order) bool {
	return s.random && !s.job.NoRandomMap && o.percent == 100 && o.hold <= 1 && o.hot.kind == hotNone &&
		o.align == s.sizes[direction].smallest
}

// tolerates tells whether failed operations of a direction are counted and passed over.
func (s *jobSpec) tolerates(d interval.Direction) bool {
	switch s.job.ContinueOnError {
	case "all", "io":
		return true
	case "read":
		return d == interval.Read
	case "write":
		return d == interval.Write
	}
	return false
}

// lackingDistribution names a distribution that only fio has, or "".
func lackingDistribution(j *fiojob.Job) string {
	switch j.Distribution.Kind {
	case "", "random", "zipf", "pareto":
		return ""
	}
	return j.Distribution.Kind
}
