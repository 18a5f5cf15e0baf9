package interval

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/stat"
)

// Progress shows when operations of one Interval completed, beside how many did.
type Progress struct {
	// Gaps are the stretches without a completed operation, those of all threads of the load together. Nil if the generator does
	// not see completions one by one.
	Gaps Gaps `json:"gaps_ns,omitempty"`
	// Waiting counts nanoseconds since the intended start of the operations in flight at the end of the interval, of those that
	// have waited for WaitingMin and longer. If the interval is Final, they never completed.
	Waiting *stat.Histogram `json:"waiting,omitempty"`
	// Early are operations of Directions that count in an earlier window of the run, because they began in it. They are known
	// where intervals were split at the steps of the run.
	Early []Early `json:"early,omitempty"`
}

// Early are operations of an Interval that began between two earlier splits, from FromNanos to ToNanos relative to the start of
// the interval. Without a split before, FromNanos is a second earlier.
type Early struct {
	FromNanos  int64    `json:"from_ns"`
	ToNanos    int64    `json:"to_ns"`
	Directions Traffics `json:"dirs"`
}

// OnTime returns the traffic of the operations that are not Early.
func (iv *Interval) OnTime() Traffics {
	own := iv.Directions
	for i := range iv.Early {
		for d := range own {
			own[d].take(&iv.Early[i].Directions[d])
		}
	}
	return own
}

// take removes o, which is part of t, from it.
func (t *Traffic) take(o *Traffic) {
	t.Operations -= min(t.Operations, o.Operations)
	t.Bytes -= min(t.Bytes, o.Bytes)
	for _, h := range []struct {
		from **stat.Histogram
		less *stat.Histogram
	}{{&t.Service, o.Service}, {&t.Response, o.Response}, {&t.Failed, o.Failed}} {
		if h.less != nil && *h.from != nil {
			*h.from = stat.Difference(*h.from, h.less)
		}
	}
	if len(o.Errors) > 0 {
		t.Errors = maps.Clone(t.Errors)
	}
	for class, n := range o.Errors {
		if t.Errors[class] -= min(t.Errors[class], n); t.Errors[class] == 0 {
			delete(t.Errors, class)
		}
	}
}

// WaitingMin is the shortest wait of an operation in flight that is recorded.
const WaitingMin = 100 * time.Millisecond

// Gap is a stretch without a completed operation, in nanoseconds from the start of its Interval.
type Gap struct{ FromNanos, ToNanos int64 }

// Gaps are in order and do not overlap. The first one ends with the first completion, the last one begins with the last
// completion, however short they are, so that the gaps of successive intervals join exactly; without a completion there is a
// single one. Of the others, those of GapMin and longer are listed.
type Gaps []Gap

const (
	// GapMin is the shortest gap within an interval that is recorded.
	GapMin = 10 * time.Millisecond
	// gapsMax bounds how many a line may have: an hour full of the shortest ones.
	gapsMax = 360_000
)

// MarshalJSON writes a flat list of times: the two of the first gap, those of the second …
func (g Gaps) MarshalJSON() ([]byte, error) { return appendGaps(nil, g), nil }

// UnmarshalJSON reads such a list.
func (g *Gaps) UnmarshalJSON(text []byte) error {
	var times []int64
	if err := json.Unmarshal(text, &times); err != nil {
		return err
	}
	if len(times)%2 != 0 || len(times) > 2*gapsMax {
		return fmt.Errorf("gaps have %d times, want an even number up to %d", len(times), 2*gapsMax)
	}
	*g = make(Gaps, 0, len(times)/2)
	for i := 0; i < len(times); i += 2 {
		*g = append(*g, Gap{times[i], times[i+1]})
	}
	return nil
}

func appendGaps(dst []byte, gaps Gaps) []byte {
	dst = append(dst, '[')
	for i, g := range gaps {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, g.FromNanos, 10)
		dst = strconv.AppendInt(append(dst, ','), g.ToNanos, 10)
	}
	return append(dst, ']')
}

// Both returns the stretches that are in both lists, each in order and without overlap.
func Both(a, b []Gap) []Gap {
	var out []Gap
	for len(a) > 0 && len(b) > 0 {
		if from, to := max(a[0].FromNanos, b[0].FromNanos), min(a[0].ToNanos, b[0].ToNanos); from < to {
			out = append(out, Gap{from, to})
		}
		if a[0].ToNanos < b[0].ToNanos {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// Place moves the interval to another clock's time axis, with what it records of its time.
func (iv *Interval) Place(start, length int64) {
	if length != iv.LengthNanos && iv.LengthNanos > 0 {
		factor := float64(length) / float64(iv.LengthNanos)
		for i := range iv.Gaps {
			g := &iv.Gaps[i]
			if g.FromNanos = int64(float64(g.FromNanos) * factor); g.ToNanos >= iv.LengthNanos {
				g.ToNanos = length
			} else {
				g.ToNanos = int64(float64(g.ToNanos) * factor)
			}
		}
	}
	iv.StartNanos, iv.LengthNanos = start, length
}
