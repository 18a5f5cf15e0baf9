package stat

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// errNotOwn means that a text does not have the layout of AppendJSON, although it may be valid.
var errNotOwn = errors.New("not laid out as written by this program")

// readOwn reads only the exact layout of AppendJSON. Bundles hold millions of histograms, and the general reader takes ten times
// as long.
func (h *Histogram) readOwn(data []byte) error {
	r := Tokens{Data: data}
	var s sparse
	r.Literal(`{"n":`)
	s.Count = r.Uint()
	r.Literal(`,"sum":`)
	s.Sum = r.float()
	r.Literal(`,"sq":`)
	s.SumSq = r.float()
	r.Literal(`,"min":`)
	s.Min = r.Uint()
	r.Literal(`,"max":`)
	s.Max = r.Uint()
	if r.Optional(`,"sum_low":`) {
		s.SumLow = r.float()
		r.Literal(`,"sq_low":`)
		s.SumSqLow = r.float()
	}
	r.Literal(`,"b":"`)
	if r.Bad || len(data)-r.Pos < 2 || string(data[len(data)-2:]) != `"}` {
		return errNotOwn
	}
	walk := data[r.Pos : len(data)-2]
	if bytes.ContainsAny(walk, "\"\\") {
		return errNotOwn
	}
	// The largest value determines the required size. Buckets come in rising order, and growing with them would allocate
	// repeatedly.
	if last := BucketOf(s.Max); len(walk) > 0 && last >= len(h.counts) {
		h.grow(last)
	}
	if err := h.walk(walk); err != nil {
		return err
	}
	return h.complete(&s)
}

// Tokens reads text of a known layout. At the first unexpected token it sets Bad, and all values read are invalid.
type Tokens struct {
	Data []byte
	Pos  int
	Bad  bool
}

// Optional reads s if it comes next.
func (r *Tokens) Optional(s string) bool {
	if r.Bad || len(r.Data)-r.Pos < len(s) || string(r.Data[r.Pos:r.Pos+len(s)]) != s {
		return false
	}
	r.Pos += len(s)
	return true
}

// Literal reads s, which must come next.
func (r *Tokens) Literal(s string) {
	if !r.Optional(s) {
		r.Bad = true
	}
}

// Uint reads a number as JSON writes it, of at most 19 digits: more could overflow.
func (r *Tokens) Uint() uint64 {
	var n uint64
	start := r.Pos
	for r.Pos < len(r.Data) {
		digit := r.Data[r.Pos] - '0'
		if digit > 9 {
			break
		}
		n = n*10 + uint64(digit)
		r.Pos++
	}
	if digits := r.Pos - start; digits == 0 || digits > 19 || digits > 1 && r.Data[start] == '0' {
		r.Bad = true
	}
	return n
}

// float reads a number that is followed by a comma.
func (r *Tokens) float() float64 {
	end := bytes.IndexByte(r.Data[r.Pos:], ',')
	if r.Bad || end <= 0 {
		r.Bad = true
		return 0
	}
	text := r.Data[r.Pos : r.Pos+end]
	r.Pos += end
	if len(text) <= 19 && isDigits(text) { // fits a uint64, whose conversion rounds as parsing does
		var n uint64
		for _, d := range text {
			n = n*10 + uint64(d-'0')
		}
		return float64(n)
	}
	f, err := strconv.ParseFloat(string(text), 64)
	r.Bad = err != nil || !json.Valid(text) // strconv accepts more than JSON does
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
