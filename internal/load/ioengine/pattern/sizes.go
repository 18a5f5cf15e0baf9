package pattern

import (
	"math"
	"math/bits"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Sizes is the distribution of block sizes in one direction of a job.
type Sizes struct {
	Smallest, Largest int64
	Span              uint64 // above 0: any size from smallest on, so many of them (bs_unaligned)
	Steps             uint64 // above 0: smallest, 2·smallest … steps·smallest, all equally often (bsrange)
	list              []int64
	upTo              []uint64 // list[i] is chosen by draws up to upTo[i] (bssplit)
	shares            []float64
}

// SizesOf reads bssplit, else bsrange, else bs, which is the order of precedence in fio.
func SizesOf(j *fiojob.Job, d fiojob.Direction) Sizes {
	if len(j.BlockSplit[d]) > 0 {
		return splitSizes(j.BlockSplit[d], j.BlockUnaligned)
	}
	if low, high := j.BlockRange[d][0], j.BlockRange[d][1]; low > 0 && high > low {
		if j.BlockUnaligned {
			return Sizes{Smallest: low, Largest: high, Span: uint64(high-low) + 1}
		}
		steps := high / low
		return Sizes{Smallest: low, Largest: steps * low, Steps: uint64(steps)}
	}
	size := j.BlockSize[d]
	if low := j.BlockRange[d][0]; low > 0 {
		size = low
	}
	return Sizes{Smallest: size, Largest: size}
}

// splitSizes follows fio where the shares do not add up to 100: entries without a share divide what is left, and with
// none of those the entry with the largest share (of several the last) takes the difference, up or down. Sizes are
// multiples of the smallest one, unless unaligned.
func splitSizes(splits []syntax.Split, unaligned bool) Sizes {
	s := Sizes{Smallest: math.MaxInt64}
	for _, split := range splits {
		s.Smallest = min(s.Smallest, split.Bytes)
	}
	var sum float64
	open, top := 0, 0
	for i, split := range splits {
		size := split.Bytes
		if !unaligned {
			size -= size % s.Smallest
		}
		s.list = append(s.list, size)
		s.Largest = max(s.Largest, s.list[i])
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
func (s *Sizes) finish() {
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
func (s *Sizes) at(draw uint64) int64 {
	if s.Span > 0 {
		more, _ := bits.Mul64(draw, s.Span)
		return s.Smallest + int64(more)
	}
	if s.Steps > 0 {
		step, _ := bits.Mul64(draw, s.Steps)
		return s.Smallest * int64(step+1)
	}
	for i, bound := range s.upTo {
		if draw <= bound {
			return s.list[i]
		}
	}
	return s.Smallest
}

// Fixed reports whether there is only one size.
func (s *Sizes) Fixed() bool { return s.Smallest == s.Largest }

// Each calls f for every size and its share of the operations; of a span only for its ends, which have the same mean.
func (s *Sizes) Each(f func(size int64, share float64)) {
	switch {
	case s.Span > 0:
		f(s.Smallest, 0.5)
		f(s.Largest, 0.5)
	case s.Steps > 0:
		for i := range s.Steps {
			f(s.Smallest*int64(i+1), 1/float64(s.Steps))
		}
	case len(s.list) > 0:
		for i, size := range s.list {
			f(size, s.shares[i])
		}
	default:
		f(s.Smallest, 1)
	}
}

// Mean returns the mean size.
func (s *Sizes) Mean() float64 {
	var sum float64
	s.Each(func(size int64, share float64) { sum += float64(size) * share })
	return sum
}

// Equal reports whether both distributions are the same.
func (s *Sizes) Equal(o *Sizes) bool {
	if s.Smallest != o.Smallest || s.Largest != o.Largest || s.Steps != o.Steps || s.Span != o.Span || len(s.list) != len(o.list) {
		return false
	}
	for i := range s.list {
		if s.list[i] != o.list[i] || s.shares[i] != o.shares[i] {
			return false
		}
	}
	return true
}

// Misfit returns a size that is not a multiple of align, 0 where all are.
func (s *Sizes) Misfit(align int64) int64 {
	if s.Span > 1 {
		return s.Smallest + 1
	}
	var found int64
	s.Each(func(size int64, _ float64) {
		if size%align != 0 {
			found = size
		}
	})
	return found
}
