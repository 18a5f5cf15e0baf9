package fiolog

import (
	"math"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
)

// averages writes one line per window and direction. A window is written when a tenth of the next one has passed or the
// load ends: a shorter last piece joins the window before it, because a rate over some microseconds is noise.
type averages struct {
	length, boundary int64 // of the window that is not yet written, and its end
	window           string
	now, next        [interval.DirectionCount]sums
}

// sums are the sums of a window; times are nanoseconds.
type sums struct {
	operations, bytes            uint64
	latency, service, submission sum
}

type sum struct{ count, total, highest uint64 }

func (s *sum) add(v uint64) {
	s.count++
	s.total += v
	s.highest = max(s.highest, v)
}

func (s *sum) join(o *sum) {
	s.count += o.count
	s.total += o.total
	s.highest = max(s.highest, o.highest)
}

func (s *sum) mean() uint64 { return (s.total + s.count/2) / max(1, s.count) }

func (s *sums) join(o *sums) {
	s.operations += o.operations
	s.bytes += o.bytes
	s.latency.join(&o.latency)
	s.service.join(&o.service)
	s.submission.join(&o.submission)
}

// add counts an operation; the times of operations never decrease.
func (a *averages) add(r *Recorder, o *operation) {
	for o.at >= a.boundary+a.length/10 {
		a.write(r, a.boundary, a.length)
		a.advance()
	}
	into := &a.now[o.direction]
	if o.at >= a.boundary {
		into = &a.next[o.direction]
	}
	into.operations++
	into.bytes += uint64(o.size)
	into.latency.add(o.latency)
	into.service.add(o.service)
	if o.submit != 0 {
		into.submission.add(o.submit)
	}
}

func (a *averages) advance() {
	a.now, a.next = a.next, [interval.DirectionCount]sums{}
	a.boundary += a.length
}

// finish writes the last window when the load has ended.
func (a *averages) finish(r *Recorder, end int64) {
	for end >= a.boundary+a.length/10 {
		a.write(r, a.boundary, a.length)
		a.advance()
	}
	if end >= a.boundary {
		for d := range a.now {
			a.now[d].join(&a.next[d])
		}
	}
	a.write(r, end, end-(a.boundary-a.length))
}

// write adds the lines of the window that ends at end.
func (a *averages) write(r *Recorder, end, length int64) {
	millis := r.millis(end)
	for i := range a.now {
		s, d := &a.now[i], interval.Direction(i)
		if !r.clone.Directions[d] && s.operations == 0 {
			continue
		}
		perSecond := func(n, unit uint64) *sum { // its mean is also its largest value
			rate := uint64(math.Round(float64(n) * 1e9 / float64(length) / float64(unit)))
			return &sum{count: 1, total: rate, highest: rate}
		}
		a.line(r, r.each.bandwidth, millis, d, perSecond(s.bytes, 1024))
		a.line(r, r.each.operations, millis, d, perSecond(s.operations, 1))
		a.line(r, r.each.latency, millis, d, &s.latency)
		a.line(r, r.each.service, millis, d, &s.service)
		a.line(r, r.each.submission, millis, d, &s.submission)
	}
}

// line adds one line, unless nothing happened.
func (a *averages) line(r *Recorder, f *file, millis int64, d interval.Direction, s *sum) {
	if f == nil || s.count == 0 {
		return
	}
	n := line{millis: millis, value: s.mean(), second: s.highest, direction: uint8(d)}
	if a.window == fiojob.WindowMax {
		n.value = s.highest
	}
	f.text = r.line.append(f.text, &n)
	if len(f.text) >= f.flushAt {
		r.set.flush(f)
	}
}
