package output

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/stat"
)

// Distribution has the response times of one run.
type Distribution struct {
	Run           string  // "rd1"
	Title         string  // "RD=rd1; I/O rate: 100; elapsed=5; For loops: None"
	Reads, Writes Buckets // not of file systems
	All           Buckets
}

// Buckets are all of a table of histogram.html, from 0 on without a gap. It is empty without a table.
type Buckets []Bucket

// Bucket counts response times from Low to below High, in nanoseconds. The last one has no end: its High is 0.
type Bucket struct {
	Low, High uint64
	Count     uint64
}

var (
	titlePattern  = regexp.MustCompile(`Starting (RD=[^<]{1,1000})</b>`)
	bucketPattern = regexp.MustCompile(`^ *(\d{1,9}\.\d{1,6}) < +(\d{1,9}\.\d{1,6}|max) +(\d[\d,]{0,24}) `)
)

// countMax bounds the sum of counts.
const countMax = math.MaxInt64 / 4

// Histograms reads histogram.html. Tables that were cut are left out.
func Histograms(text string) (all []Distribution, err error) {
	var into *Buckets
	var begun Buckets
	for line := range strings.Lines(text) {
		body, whole := strings.CutSuffix(line, "\n")
		if !whole {
			break
		}
		body = strings.TrimSuffix(body, "\r")
		if m := titlePattern.FindStringSubmatch(body); m != nil {
			name, _, _ := strings.Cut(strings.TrimPrefix(m[1], "RD="), ";")
			all, into = append(all, Distribution{Run: name, Title: m[1]}), nil
			continue
		}
		if len(all) == 0 {
			continue
		}
		d := &all[len(all)-1]
		if table := d.table(body); table != nil {
			into, begun = table, nil
			continue
		}
		m := bucketPattern.FindStringSubmatch(body)
		if m == nil || into == nil {
			continue
		}
		b, err := begun.next(m)
		if err != nil {
			return nil, fmt.Errorf("read histogram of %s: %w: %.80q", d.Run, err, body)
		}
		if begun = append(begun, b); b.High == 0 {
			*into, into = begun, nil
		}
	}
	return all, nil
}

// table is where the rows below a heading belong.
func (d *Distribution) table(heading string) *Buckets {
	switch heading = strings.TrimSpace(heading); {
	case heading == "Reads and writes:", strings.HasPrefix(heading, "Total of all requested operations"):
		return &d.All
	case heading == "Reads:":
		return &d.Reads
	case heading == "Writes:":
		return &d.Writes
	}
	return nil
}

// next reads one line of a table, which continues where the one before it ended.
func (all Buckets) next(m []string) (Bucket, error) {
	low, err := nanos(m[1])
	if err != nil {
		return Bucket{}, err
	}
	b := Bucket{Low: low}
	if m[2] != "max" {
		if b.High, err = nanos(m[2]); err != nil {
			return b, err
		}
	}
	if b.Count, err = strconv.ParseUint(strings.ReplaceAll(m[3], ",", ""), 10, 63); err != nil {
		return b, err
	}
	before := uint64(0)
	if len(all) > 0 {
		before = all[len(all)-1].High
	}
	if b.Low != before || m[2] != "max" && b.High <= b.Low || b.Count > countMax-all.Count() {
		return b, fmt.Errorf("buckets are not in order")
	}
	return b, nil
}

// nanos reads milliseconds.
func nanos(text string) (uint64, error) {
	v, err := strconv.ParseFloat(text, 64)
	return uint64(math.Round(v * 1e6)), err
}

// Count is how many response times there are.
func (all Buckets) Count() (sum uint64) {
	for _, b := range all {
		sum += b.Count
	}
	return sum
}

// Histogram has every response time at the middle of its bucket; those of the last bucket at the longest one, which may be below it if it is
// not known. Off is by how much a quantile differs from the real one at most, as a part of it: 0.5 is 50 %, and infinite for the first bucket,
// which begins at 0.
func (all Buckets) Histogram(longest uint64) (h *stat.Histogram, off float64) {
	h = &stat.Histogram{}
	for _, b := range all {
		if b.Count == 0 {
			continue
		}
		at := b.Low + (b.High-b.Low)/2
		if b.High == 0 {
			at = max(b.Low, longest)
			h.RecordN(at, b.Count)
			off = max(off, float64(at-b.Low)/float64(max(b.Low, 1)))
			continue
		}
		h.RecordN(at, b.Count)
		off = max(off, float64(at-b.Low)/float64(b.Low))
	}
	return h, off
}
