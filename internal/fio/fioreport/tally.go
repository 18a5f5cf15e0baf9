package fioreport

import (
	"cmp"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// Tally adds up the intervals of a clone.
type Tally struct {
	// apart: directions ran one after the other; periods with none or both of them are not used for their rates.
	apart bool
	// surveyed: after the last operation, a job that only reads looked for headers; that time is not used for its rates.
	surveyed bool

	Traffic    [interval.DirectionCount]interval.Traffic
	samples    []sample
	Period     int64  // length of a period: an interval as delivered
	Due, Never uint64 // operations with a due time; those of them that were never issued
	backlogMax uint64
	Stalled    int64
	Last       int64 // end of the last interval
	strain     Strain
}

// sample is the work of one period, by direction. Periods of all clones end at the same times, except the last.
type sample struct {
	end, length int64
	operations  [interval.DirectionCount]float64
	bytes       [interval.DirectionCount]float64
}

// Add adds one interval of a clone whose operations count from the time from on.
func (t *Tally) Add(iv *interval.Interval, from int64) {
	s := sample{end: iv.EndNanos(), length: min(iv.LengthNanos, iv.EndNanos()-from)}
	for d := range s.operations {
		s.operations[d], s.bytes[d] = float64(iv.Directions[d].Operations), float64(iv.Directions[d].Bytes)
		t.Traffic[d].Add(&iv.Directions[d])
	}
	if s.length > 0 {
		t.samples = append(t.samples, s)
	}
	if len(t.samples) > samplesMax && t.Period > 0 {
		t.samples = coarsen(t.samples, 2*resolution(t.samples, t.Period))
	}
	t.Due += iv.Due
	t.Never += iv.NeverIssued()
	t.backlogMax = max(t.backlogMax, iv.Backlog)
	t.Stalled += iv.StalledNanos
	t.strain.count(iv)
	t.Last = max(t.Last, iv.EndNanos())
}

// samplesMax bounds the memory of a long run: above it, neighboring samples are joined in pairs.
const samplesMax = 4096

// resolution returns the length of whole samples: period, doubled zero or more times. The first and the last sample may be
// a tenth longer.
func resolution(samples []sample, period int64) int64 {
	longest := int64(0)
	for i := range samples {
		longest = max(longest, samples[i].length)
	}
	for longest > period+period/10 {
		period *= 2
	}
	return period
}

// coarsen joins the samples of one clone into longer ones.
func coarsen(samples []sample, period int64) []sample {
	out := samples[:0]
	for _, s := range samples {
		n := len(out) - 1
		if n < 0 || (out[n].end-1)/period != (s.end-1)/period {
			out = append(out, s)
			continue
		}
		length := out[n].length + s.length
		out[n].join(&s)
		out[n].length = length
	}
	return out
}

// Merge adds another clone's tally; period is the length of a sample.
func (t *Tally) Merge(o *Tally, period int64) {
	for d := range t.Traffic {
		t.Traffic[d].Add(&o.Traffic[d])
	}
	t.Due += o.Due
	t.Never += o.Never
	t.backlogMax += o.backlogMax
	t.Stalled += o.Stalled
	t.strain.Add(&o.strain)
	t.Last = max(t.Last, o.Last)
	t.samples = joinSamples(period, t.samples, o.samples)
}

// joinSamples sorts samples and merges those of the same period, so that minimum and maximum of a group are those of its
// sum, and not sums of extremes at different times. All get the length of the longest.
func joinSamples(period int64, lists ...[]sample) []sample {
	for _, list := range lists {
		period = max(period, resolution(list, period))
	}
	var all []sample
	for _, list := range lists {
		all = append(all, coarsen(slices.Clone(list), period)...)
	}
	slices.SortStableFunc(all, func(a, b sample) int { return cmp.Compare(a.end, b.end) })
	var out []sample
	for _, s := range all {
		if n := len(out) - 1; n >= 0 && (out[n].end-1)/period == (s.end-1)/period {
			out[n].join(&s)
			continue
		}
		out = append(out, s)
	}
	return out
}

func (s *sample) join(o *sample) {
	s.end, s.length = max(s.end, o.end), max(s.length, o.length)
	for d := range s.operations {
		s.operations[d] += o.operations[d]
		s.bytes[d] += o.bytes[d]
	}
}

// Spread describes rates of periods, in bytes or operations per second.
type Spread struct {
	Min, Max, Mean, StdDev float64
	Samples                int
}

// spreads returns the spreads of bytes and operations of one direction. A period that the start or the end of the load cuts
// to less than half is left out, because its rate is uncertain, unless it is the only one.
func (t *Tally) spreads(d interval.Direction, period int64) (bytes, operations Spread) {
	samples := t.samples
	for t.surveyed && len(samples) > 0 && samples[len(samples)-1].operations[d] == 0 {
		samples = samples[:len(samples)-1]
	}
	if t.apart {
		samples = slices.DeleteFunc(slices.Clone(samples), func(s sample) bool {
			return s.operations[d] == 0 || s.operations[interval.Read] > 0 && s.operations[interval.Write] > 0
		})
	}
	return spreadsOf(samples, period, func(s *sample) (bytes, operations float64) { return s.bytes[d], s.operations[d] })
}

func spreadsOf(samples []sample, period int64, of func(*sample) (bytes, operations float64)) (bytes, operations Spread) {
	period = resolution(samples, period)
	var b, o []float64
	pick := func(whole bool) {
		for i := range samples {
			s := &samples[i]
			bytes, operations := of(s)
			if s.length > 0 && (whole && s.length >= period/2 || !whole && operations > 0) {
				b = append(b, bytes*1e9/float64(s.length))
				o = append(o, operations*1e9/float64(s.length))
			}
		}
	}
	if pick(true); len(b) == 0 {
		pick(false)
	}
	return spreadOf(b), spreadOf(o)
}

func spreadOf(values []float64) Spread {
	n := float64(len(values))
	if n == 0 {
		return Spread{}
	}
	s := Spread{Min: slices.Min(values), Max: slices.Max(values), Samples: len(values)}
	for _, v := range values {
		s.Mean += v / n
	}
	for _, v := range values {
		s.StdDev += (v - s.Mean) * (v - s.Mean)
	}
	if n > 1 {
		s.StdDev = math.Sqrt(s.StdDev / (n - 1))
	}
	return s
}

// latencies returns service and response times of one direction; either may be empty, but not nil.
func (t *Tally) latencies(d interval.Direction) (service, response *stat.Histogram) {
	return t.Traffic[d].Service.CloneOrNew(), t.Traffic[d].ResponseOrService().CloneOrNew()
}
