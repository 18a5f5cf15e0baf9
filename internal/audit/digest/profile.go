package digest

import (
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/stat"
)

const (
	// profileBuckets bounds the memory of a Profile; when they do not suffice, pairs of buckets are merged.
	profileBuckets  = 4096
	profileWidthMin = int64(1e9)
	// swingSure is how many standard errors of a part of a window a swing must have.
	swingSure = 8.0
)

// Profile is operations and their latencies over time in buckets of equal width, from one second upwards.
type Profile struct {
	width   int64
	first   int64 // number of the first bucket, in widths from zero of the axis
	buckets []bucket
}

// bucket holds the operations of one bucket. Without seen it is a gap, which is not a drop to zero.
type bucket struct {
	operations, latency float64 // latency is the sum over the operations, in nanoseconds
	seen                bool
}

func (b *bucket) add(o bucket) {
	b.operations, b.latency, b.seen = b.operations+o.operations, b.latency+o.latency, b.seen || o.seen
}

// add spreads n operations and the sum of their latencies evenly over [from, to).
func (p *Profile) add(from, to int64, n, latency float64) {
	if to <= from || from < 0 {
		return
	}
	if p.width == 0 {
		p.width, p.first = profileWidthMin, from/profileWidthMin
	}
	for p.span(from, to) > profileBuckets {
		p.halve()
	}
	if from/p.width < p.first {
		p.buckets = append(make([]bucket, p.first-from/p.width), p.buckets...)
		p.first = from / p.width
	}
	for at := from; at < to; {
		i := at / p.width
		end := min(to, (i+1)*p.width)
		for int64(len(p.buckets)) <= i-p.first {
			p.buckets = append(p.buckets, bucket{})
		}
		share := float64(end-at) / float64(to-from)
		p.buckets[i-p.first].add(bucket{operations: n * share, latency: latency * share, seen: true})
		at = end
	}
}

// span is the number of buckets that would be in use with [from, to).
func (p *Profile) span(from, to int64) int64 {
	last := max((to-1)/p.width, p.first+int64(len(p.buckets))-1)
	return last - min(p.first, from/p.width) + 1
}

func (p *Profile) halve() {
	merged := make([]bucket, 0, len(p.buckets)/2+1)
	for i, b := range p.buckets {
		at := (p.first+int64(i))/2 - p.first/2
		if int64(len(merged)) <= at {
			merged = append(merged, bucket{})
		}
		merged[at].add(b)
	}
	p.buckets, p.first, p.width = merged, p.first/2, p.width*2
}

// Seconds is how long each value of Over lasts.
func (p *Profile) Seconds() float64 {
	if p == nil {
		return 0
	}
	return float64(p.width) / 1e9
}

// Over returns the operations per second of every bucket entirely within [from, to), and the mean latencies of those in which an
// operation completed.
func (p *Profile) Over(from, to int64) (rates, latencies []float64) {
	if p == nil || p.width == 0 {
		return nil, nil
	}
	for i, b := range p.buckets {
		start := (p.first + int64(i)) * p.width
		if !b.seen || start < from || start+p.width > to {
			continue
		}
		rates = append(rates, b.operations/(float64(p.width)/1e9))
		if b.operations > 0 && b.latency > 0 {
			latencies = append(latencies, b.latency/b.operations)
		}
	}
	return rates, latencies
}

// Trend is a straight line through equally spaced values.
type Trend struct {
	Mean, CV float64
	Drift    float64 // change from the first to the last value along the line, as a share of the mean
	T        float64 // slope divided by its standard error
}

// Fit computes the least-squares line (Draper and Smith, Applied Regression Analysis, 3rd edition, chapter 1).
func Fit(values []float64) Trend {
	n := float64(len(values))
	if n < 3 {
		return Trend{Mean: math.NaN(), CV: math.NaN(), Drift: math.NaN(), T: math.NaN()}
	}
	var sum, sumX, sumXY, sumXX float64
	for i, v := range values {
		x := float64(i)
		sum += v
		sumX += x
		sumXY += x * v
		sumXX += x * x
	}
	mean := sum / n
	sxx := sumXX - sumX*sumX/n
	slope := (sumXY - sumX*sum/n) / sxx
	var residual, spread float64
	for i, v := range values {
		line := mean + slope*(float64(i)-sumX/n)
		residual += (v - line) * (v - line)
		spread += (v - mean) * (v - mean)
	}
	out := Trend{Mean: mean, CV: math.Sqrt(spread/n) / mean, Drift: slope * (n - 1) / mean}
	if residual == 0 {
		out.T = math.Inf(1)
		if slope == 0 {
			out.T = 0
		}
		return out
	}
	out.T = slope / math.Sqrt(residual/(n-2)/sxx)
	return out
}

// Swing is how far means over blocks of values differ, as a share of the mean of all: the difference of the second largest and
// the second smallest, so that a single outlying block has no effect. Of all block lengths, from two values to a quarter of all,
// it takes the one with the largest difference, if that exceeds what the scatter within blocks explains (swingSure standard
// errors of a block); otherwise it is 0.
func Swing(values []float64) float64 {
	worst := 0.0
	for length := 2; length <= len(values)/4; length *= 2 {
		var means []float64
		var within, count float64
		for block := range slices.Chunk(values[:len(values)/length*length], length) {
			mean := stat.Mean(block)
			means = append(means, mean)
			for _, v := range block {
				within += (v - mean) * (v - mean)
			}
			count += float64(length - 1)
		}
		slices.Sort(means)
		apart := means[len(means)-2] - means[1]
		if apart <= swingSure*math.Sqrt(within/count/float64(length)) {
			continue
		}
		worst = max(worst, apart/stat.Mean(values))
	}
	return worst
}
