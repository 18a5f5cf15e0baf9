package analysis

import "github.com/braggdev/bragg/internal/result"

// Reduce thins out points for drawing. It divides them into stretches with equal numbers of points. Of each it keeps the smallest
// and the largest value, in their order, at one quarter and three quarters of the stretch. So every peak stays, and all series
// with the same points share one time axis. A stretch without any value stays a gap. Mean and percentiles are not kept:
// statistics must come from all points. Rejected: averaging, which hides peaks, and largest-triangle selection, which may drop
// them and gives every series its own times.
func Reduce(points result.Points, limit int) result.Points {
	if len(points) <= limit || limit < 2 {
		return points
	}
	stretches := limit / 2
	out := make(result.Points, 0, 2*stretches)
	for s := range stretches {
		from, to := s*len(points)/stretches, (s+1)*len(points)/stretches
		part := points[from:to]
		low, high := -1, -1
		for i, p := range part {
			if isMissing(p.Value) {
				continue
			}
			if low < 0 || p.Value < part[low].Value {
				low = i
			}
			if high < 0 || p.Value > part[high].Value {
				high = i
			}
		}
		begin, end := part[0].Seconds, part[len(part)-1].Seconds
		first, second := nan, nan
		if low >= 0 {
			first, second = part[min(low, high)].Value, part[max(low, high)].Value
		}
		out = append(out,
			result.Point{Seconds: begin + (end-begin)/4, Value: first},
			result.Point{Seconds: begin + 3*(end-begin)/4, Value: second})
	}
	return out
}
