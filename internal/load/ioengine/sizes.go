package ioengine

import (
	"math"
	"math/bits"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// sizes is the distribution of block sizes in one direction of a job.
type sizes struct {
	smallest, largest int64
	span              uint64 // above 0: any size from smallest on, so many of them (bs_unaligned)
	steps             uint64 // above 0: smallest, 2·smallest … steps·smallest, all equally often (bsrange)
	list              []int64
	upTo              []uint64 // list[i] is chosen by draws up to upTo[i] (bssplit)
	shares            []float64
}

// sizesOf reads bssplit, else bsrange, else bs, which is the order of precedence in fio.
func sizesOf(j *fiojob.Job, d fiojob.Direction) sizes {
	if len(j.BlockSplit[d]) > 0 {
		return splitSizes(j.BlockSplit[d], j.BlockUnaligned)
	}
	if low, high := j.BlockRange[d][0], j.BlockRange[d][1]; low > 0 && high > low {
		if j.BlockUnaligned {
			return sizes{smallest: low, largest: high, span: uint64(high-low) + 1}
		}
		steps := high / low
		return sizes{smallest: low, largest: steps * low, steps: uint64(steps)}
	}
	size := j.BlockSize[d]
	if low := j.BlockRange[d][0]; low > 0 {
		size = low
	}
	return sizes{smallest: size, largest: size}
}

// splitSizes follows fio where the shares do not add up to 100: entries without a share divide what is left, and with
// none of those the entry with the largest share (of several the last) takes the difference, up or down. Sizes are
// multiples of the smallest one, unless unaligned.
func splitSizes(splits []fiojob.Split, unaligned bool) sizes {
	s := sizes{smallest: math.MaxInt64}
	for _, split := range splits {
		s.smallest = min(s.smallest, split.Bytes)
	}
	var sum float64
	open, top := 0, 0
	for i, split := range splits {
		size := split.Bytes
		if !unaligned {
			size -= size % s.smallest
		}
		s.list = append(s.list, size)
		s.largest = max(s.largest, s.list[i])
		s.shares = append(s.shares, split.Percent/100)
		sum += s.shares[i]
		if split.Percent == 0 {
			open++
		}
		if split.Percent >= splits[top].Percent {
			top = i
		}
	}
	switch {
	case open > 0 && sum < 1:
		for i := range s.shares {
			if s.shares[i] == 0 {
				s.shares[i] = (1 - sum) / float64(open)
			}
		}
	default:
		s.shares[top] = max(0, s.shares[top]+1-sum)
	}
	s.finish()
	return s
}

// finish turns shares into bounds of draws.
func (s *sizes) finish() {
	var sum, reached float64
	for _, share := range s.shares {
		sum += share
	}
	for i, share := range s.shares {
		reached += share
		bound := uint64(math.MaxUint64)
		if fraction := reached / sum; fraction < 1 && i+1 < len(s.shares) {
			bound = uint64(fraction * math.MaxUint64)
		}
		s.upTo = append(s.upTo, bound)
	}
}

// at returns the size that 64 random bits choose.
func (s *sizes) at(draw uint64) int64 {
	if s.span > 0 {
		more, _ := bits.Mul64(draw, s.span)
		return s.smallest + int64(more)
	}
	if s.steps > 0 {
		step, _ := bits.Mul64(draw, s.steps)
		return s.smallest * int64(step+1)
	}
	for i, bound := range s.upTo {
		if draw <= bound {
			return s.list[i]
		}
	}
	return s.smallest
}

// fixed tells whether there is only one size.
func (s *sizes) fixed() bool { return s.smallest == s.largest }

// each calls f for every size and its share of the operations; of a span only for its ends, which have the same mean.
func (s *sizes) each(f func(size int64, share float64)) {
	switch {
	case s.span > 0:
		f(s.smallest, 0.5)
		f(s.largest, 0.5)
	case s.steps > 0:
		for i := range s.steps {
			f(s.smallest*int64(i+1), 1/float64(s.steps))
		}
	case len(s.list) > 0:
		for i, size := range s.list {
			f(size, s.shares[i])
		}
	default:
		f(s.smallest, 1)
	}
}

// mean returns the mean size.
func (s *sizes) mean() float64 {
	var sum float64
	s.each(func(size int64, share float64) { sum += float64(size) * share })
	return sum
}

// equal tells whether both distributions are the same.
func (s *sizes) equal(o *sizes) bool {
	if s.smallest != o.smallest || s.largest != o.largest || s.steps != o.steps || s.span != o.span || len(s.list) != len(o.list) {
		return false
	}
	for i := range s.list {
		if s.list[i] != o.list[i] || s.shares[i] != o.shares[i] {
			return false
		}
	}
	return true
}

// misfit returns a size that is no multiple of align, 0 where all are.
func (s *sizes) misfit(align int64) int64 {
	if s.span > 1 {
		return s.smallest + 1
	}
	var found int64
	s.each(func(size int64, _ float64) {
		if size%align != 0 {
			found = size
		}
	})
	return found
}
