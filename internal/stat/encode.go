package stat

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// The JSON of a Histogram has its totals and the non-empty buckets in order, each as the number of empty buckets before it and
// its count. The number of empty buckets is written in base 26, the last digit as a small letter (a is 0) and any before it as
// capitals; the count follows in decimal and is omitted if it is 1. Three values of 100, 101 and 300 lie in the buckets 100, 101
// and 278:
//
//	{"n":3,"sum":501,"sq":110201,"min":100,"max":300,"b":"DwaGu"}
//
// Rejected: an array of numbers, which is three times as large and as slow; a bundle has millions of histograms.

// sparse is this JSON for the general reader.
type sparse struct {
	Count uint64  `json:"n"`
	Sum   float64 `json:"sum"`
	SumSq float64 `json:"sq"`
	Min   uint64  `json:"min"`
	Max   uint64  `json:"max"`
	Walk  string  `json:"b"`
	// What rounding took from the sums (AppendExact).
	SumLow   float64 `json:"sum_low"`
	SumSqLow float64 `json:"sq_low"`
}

// MarshalJSON writes only the buckets that are not empty.
func (h *Histogram) MarshalJSON() ([]byte, error) { return h.AppendJSON(nil), nil }

// AppendJSON appends what MarshalJSON returns, without allocating if dst has room.
func (h *Histogram) AppendJSON(dst []byte) []byte { return h.appendBuckets(h.totals.append(dst)) }

func (h *Histogram) appendBuckets(dst []byte) []byte {
	dst = append(dst, `,"b":"`...)
	low, high := h.used()
	next := 0
	for i := low; i < high; i++ {
		n := h.counts[i]
		if n == 0 {
			continue
		}
		dst = appendSkip(dst, i-next)
		if n != 1 {
			dst = strconv.AppendUint(dst, n, 10)
		}
		next = i + 1
	}
	return append(dst, '"', '}')
}

// appendSkip writes the number of empty buckets before one in use.
func appendSkip(dst []byte, n int) []byte {
	if n >= 26*26 {
		dst = append(dst, 'A'+byte(n/(26*26)))
	}
	if n >= 26 {
		dst = append(dst, 'A'+byte(n/26%26))
	}
	return append(dst, 'a'+byte(n%26))
}

// appendFloat writes what encoding/json would, for values that are not negative.
func appendFloat(dst []byte, f float64) []byte {
	if f != 0 && (f < 1e-6 || f >= 1e21) {
		text, err := json.Marshal(f)
		if err != nil { // an overflow: a missing sum is better than a missing histogram
			return append(dst, '0')
		}
		return append(dst, text...)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// UnmarshalJSON reads what MarshalJSON wrote and refuses anything that cannot be a histogram, so that a damaged or hostile file
// cannot make a later reader crash or allocate without bound. On an error h is unchanged.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	var out Histogram
	if err := out.ReadJSON(data); err != nil {
		return err
	}
	*h = out
	return nil
}

// ReadJSON is UnmarshalJSON that reuses the memory of h. On an error h is empty.
func (h *Histogram) ReadJSON(data []byte) error {
	h.Reset()
	err := h.readOwn(data)
	if errors.Is(err, errNotOwn) {
		h.Reset()
		err = h.readAny(data)
	}
	if err != nil {
		h.Reset()
	}
	return err
}

// readAny reads any equivalent JSON.
func (h *Histogram) readAny(data []byte) error {
	var s sparse
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("read histogram: %w", err)
	}
	if err := h.walk([]byte(s.Walk)); err != nil {
		return err
	}
	return h.complete(&s)
}

var errWalk = errors.New("read histogram: bucket or count out of range")

// walk fills the buckets of h, which is empty. After an error any bucket may be dirty, and Reset clears them all.
func (h *Histogram) walk(text []byte) error {
	h.count, h.min, h.max = 1, 0, math.MaxUint64
	first, next, total := -1, 0, uint64(0)
	for i := 0; i < len(text); {
		skip := 0
		for ; i < len(text) && text[i]-'A' < 26; i++ {
			if skip = skip*26 + int(text[i]-'A'); skip > BucketCount {
				return errWalk
			}
		}
		if i == len(text) || text[i]-'a' >= 26 {
			return errWalk
		}
		next += skip*26 + int(text[i]-'a')
		i++
		count := uint64(1)
		if i < len(text) && text[i]-'0' < 10 {
			count = 0
			for ; i < len(text) && text[i]-'0' < 10; i++ {
				if count > (math.MaxUint64-9)/10 {
					return errWalk
				}
				count = count*10 + uint64(text[i]-'0')
			}
		}
		if next >= BucketCount || count == 0 || total > math.MaxUint64-count {
			return errWalk
		}
		if next >= len(h.counts) {
			h.grow(next)
		}
		if first < 0 {
			first = next
		}
		h.counts[next] = count
		total += count
		next++
	}
	if h.count, h.min, h.max = total, 0, 0; first >= 0 {
		h.min, _ = BucketBounds(first)
		h.max, _ = BucketBounds(next - 1)
	}
	return nil
}

// complete sets the totals after checking them against the buckets.
func (h *Histogram) complete(s *sparse) error {
	low, high := h.used()
	switch {
	case h.count != s.Count || s.Min > s.Max || s.Sum+s.SumLow < 0 || s.SumSq+s.SumSqLow < 0:
		return fmt.Errorf("read histogram: totals do not match buckets")
	case h.count == 0 && (s.Min != 0 || s.Max != 0):
		return fmt.Errorf("read histogram: totals do not match buckets")
	case h.count > 0 && (BucketOf(s.Min) != low || BucketOf(s.Max) != high-1):
		return fmt.Errorf("read histogram: bounds do not match buckets")
	}
	h.sum, h.sumSq, h.min, h.max = s.Sum, s.SumSq, s.Min, s.Max
	h.sumLow, h.sumSqLow = s.SumLow, s.SumSqLow
	return nil
}
