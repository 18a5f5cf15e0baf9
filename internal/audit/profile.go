package audit

import "math"

const (
	// profileBuckets bounds the memory of a profile; when they do not suffice, two become one.
	profileBuckets  = 4096
	profileWidthMin = int64(1e9)
)

// profile is operations over time in buckets of equal width, from one second upwards.
type profile struct {
	width   int64
	first   int64 // number of the first bucket, in widths from zero of the axis
	buckets []float64
	seen    []bool // whether anything was recorded in a bucket: a gap is not a drop to zero
}

// add spreads n operations evenly over [from, to).
func (p *profile) add(from, to int64, n float64) {
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
		p.buckets = append(make([]float64, p.first-from/p.width), p.buckets...)
		p.seen = append(make([]bool, p.first-from/p.width), p.seen...)
		p.first = from / p.width
	}
	for at := from; at < to; {
		i := at / p.width
		end := min(to, (i+1)*p.width)
		for int64(len(p.buckets)) <= i-p.first {
			p.buckets, p.seen = append(p.buckets, 0), append(p.seen, false)
		}
		p.seen[i-p.first] = true
		p.buckets[i-p.first] += n * float64(end-at) / float64(to-from)
		at = end
	}
}

// span is the number of buckets that would be in use with [from, to).
func (p *profile) span(from, to int64) int64 {
	last := max((to-1)/p.width, p.first+int64(len(p.buckets))-1)
	return last - min(p.first, from/p.width) + 1
}

func (p *profile) halve() {
	merged, seen := make([]float64, 0, len(p.buckets)/2+1), make([]bool, 0, len(p.buckets)/2+1)
	for i, n := range p.buckets {
		at := (p.first+int64(i))/2 - p.first/2
		if int64(len(merged)) <= at {
			merged, seen = append(merged, 0), append(seen, false)
		}
		merged[at] += n
		seen[at] = seen[at] || p.seen[i]
	}
	p.buckets, p.seen, p.first, p.width = merged, seen, p.first/2, p.width*2
}

// rates returns the operations per second of every bucket that lies wholly in [from, to).
func (p *profile) rates(from, to int64) []float64 {
	if p == nil || p.width == 0 {
		return nil
	}
	var list []float64
	for i, n := range p.buckets {
		start := (p.first + int64(i)) * p.width
		if p.seen[i] && start >= from && start+p.width <= to {
			list = append(list, n/(float64(p.width)/1e9))
		}
	}
	return list
}

// trend is a straight line through equally spaced values.
type trend struct {
	mean, cv float64
	drift    float64 // change from the first to the last value along the line, as a share of the mean
	t        float64 // slope divided by its standard error
}

// fit computes the least-squares line (Draper and Smith, Applied Regression Analysis, 3rd edition, chapter 1).
func fit(values []float64) trend {
	n := float64(len(values))
	if n < 3 {
		return trend{mean: math.NaN(), cv: math.NaN(), drift: math.NaN(), t: math.NaN()}
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
	out := trend{mean: mean, cv: math.Sqrt(spread/n) / mean, drift: slope * (n - 1) / mean}
	if residual == 0 {
		out.t = math.Inf(1)
		if slope == 0 {
			out.t = 0
		}
		return out
	}
	out.t = slope / math.Sqrt(residual/(n-2)/sxx)
	return out
}
