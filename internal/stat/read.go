package stat

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// errNotOwn says that a text is not laid out as AppendJSON lays it out, though it may be right.
var errNotOwn = errors.New("not laid out as written by this program")

// readOwn reads the very layout of AppendJSON. Bundles hold millions of histograms, and the general reader takes ten
// times as long.
func (h *Histogram) readOwn(data []byte) error {
	r := ownReader{data: data}
	var s sparse
	r.literal(`{"n":`)
	s.Count = r.uint()
	r.literal(`,"sum":`)
	s.Sum = r.float()
	r.literal(`,"sq":`)
	s.SumSq = r.float()
	r.literal(`,"min":`)
	s.Min = r.uint()
	r.literal(`,"max":`)
	s.Max = r.uint()
	r.literal(`,"b":"`)
	if r.bad || len(data)-r.pos < 2 || string(data[len(data)-2:]) != `"}` {
		return errNotOwn
	}
	walk := data[r.pos : len(data)-2]
	if bytes.ContainsAny(walk, "\"\\") {
		return errNotOwn
	}
	// The largest value says how much room is needed: buckets come in rising order, and growing with them would allocate again and again.
	if last := BucketOf(s.Max); len(walk) > 0 && last >= len(h.counts) {
		h.grow(last)
	}
	if err := h.walk(walk); err != nil {
		return err
	}
	return h.complete(&s)
}

// ownReader reads tokens; after the first that is not there, bad is set and everything reads as nothing.
type ownReader struct {
	data []byte
	pos  int
	bad  bool
}

func (r *ownReader) literal(s string) {
	if r.bad || len(r.data)-r.pos < len(s) || string(r.data[r.pos:r.pos+len(s)]) != s {
		r.bad = true
		return
	}
	r.pos += len(s)
}

func (r *ownReader) uint() uint64 {
	var n uint64
	start := r.pos
	for r.pos < len(r.data) {
		digit := r.data[r.pos] - '0'
		if digit > 9 {
			break
		}
		n = n*10 + uint64(digit)
		r.pos++
	}
	// More digits could overflow, and JSON knows no leading zero: the general reader judges.
	if digits := r.pos - start; digits == 0 || digits > 19 || digits > 1 && r.data[start] == '0' {
		r.bad = true
	}
	return n
}

func (r *ownReader) float() float64 {
	end := bytes.IndexByte(r.data[r.pos:], ',')
	if r.bad || end <= 0 {
		r.bad = true
		return 0
	}
	text := r.data[r.pos : r.pos+end]
	r.pos += end
	if len(text) <= 19 && isDigits(text) { // fits a uint64, whose conversion rounds as parsing does
		var n uint64
		for _, d := range text {
			n = n*10 + uint64(d-'0')
		}
		return float64(n)
	}
	f, err := strconv.ParseFloat(string(text), 64)
	r.bad = err != nil || !json.Valid(text) // strconv takes more than JSON does
	return f
}

func isDigits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) == 1 || text[0] != '0'
}
