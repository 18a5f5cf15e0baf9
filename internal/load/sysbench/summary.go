package sysbench

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/stat"
)

// summary is what sysbench prints at its end.
type summary struct {
	events     uint64
	bytes      uint64 // by its own rate, rounded to its digits
	percentile float64
	seconds    float64
	read       float64         // MiB/s of files
	written    float64         //
	flushed    float64         // per second
	latencies  *stat.Histogram // nil if the load was ended early: then there is none
	unfinished uint64          // operations in flight when it was ended early
	sql        *queries        // nil without a database
}

var (
	bucketPattern     = regexp.MustCompile(`^ *` + number + ` \|\** +(\d{1,18})$`)
	eventsPattern     = regexp.MustCompile(`(?m)^ +total number of events: +(\d{1,18})$`)
	timePattern       = regexp.MustCompile(`(?m)^ +(?:total time|time elapsed): +` + number + `s$`)
	maximumPattern    = regexp.MustCompile(`(?m)^ +max: +` + number + `$`)
	sumPattern        = regexp.MustCompile(`(?m)^ +sum: +(\d{1,15}\.\d{1,9})$`)
	percentilePattern = regexp.MustCompile(`(?m)^ +\d+th percentile: +` + number + `$`)
	readPattern       = regexp.MustCompile(`(?m)^ +read, MiB/s: +` + number + `$`)
	writtenPattern    = regexp.MustCompile(`(?m)^ +written, MiB/s: +` + number + `$`)
	flushedPattern    = regexp.MustCompile(`(?m)^ +fsyncs/s: +` + number + `$`)
	unfinishedPattern = regexp.MustCompile(`(?m)^Number of unfinished transactions on forced shutdown: (\d{1,18})$`)
)

const (
	histogramTitle = "Latency histogram"
	// lastTitle begins the last line; without it the output was cut.
	lastTitle     = "\n    execution time (avg/stddev):"
	histogramHead = "------------- distribution -------------"
	// countMax bounds numbers of events, so that sums do not overflow.
	countMax = math.MaxInt64 / 4
)

// parseSummary reads sysbench's output from the end of the reports.
func parseSummary(text string) (s summary, err error) {
	if _, last, _ := strings.Cut(text, lastTitle); !strings.Contains(last, "\n") {
		return s, errors.New("sysbench printed no summary")
	}
	m := eventsPattern.FindStringSubmatch(text)
	if m == nil {
		return s, errors.New("sysbench's summary has no number of events")
	}
	if s.events, err = strconv.ParseUint(m[1], 10, 63); err != nil {
		return s, fmt.Errorf("read sysbench's summary: %w", err)
	}
	s.percentile, s.read, s.written, s.flushed = find(percentilePattern, text), find(readPattern, text), find(writtenPattern, text), find(flushedPattern, text)
	s.seconds = find(timePattern, text)
	s.bytes = uint64(min((s.read+s.written)*mebibyte*s.seconds, countMax))
	if m := unfinishedPattern.FindStringSubmatch(text); m != nil {
		s.unfinished, _ = strconv.ParseUint(m[1], 10, 63)
	}
	if s.sql, err = parseQueries(text); err != nil {
		return s, err
	}
	if strings.Contains(text, histogramTitle) {
		s.latencies, err = parseHistogram(text, find(maximumPattern, text), find(sumPattern, text))
		if err == nil && s.latencies.Count() != s.events {
			err = fmt.Errorf("sysbench's histogram has %d latencies, and its summary %d events", s.latencies.Count(), s.events)
		}
	}
	return s, err
}

// queries are what sysbench sent to a database.
type queries struct{ read, written, other, total, transactions, ignored, reconnects uint64 }

const queriesTitle = "\nSQL statistics:\n"

var queriesPattern = regexp.MustCompile(`(?s)^    queries performed:
        read: +(\d{1,18})
        write: +(\d{1,18})
        other: +(\d{1,18})
        total: +(\d{1,18})
    transactions: +(\d{1,18}) [^\n]+
    queries: +(\d{1,18}) [^\n]+
    ignored errors: +(\d{1,18}) [^\n]+
    reconnects: +(\d{1,18}) [^\n]+
`)

func parseQueries(text string) (*queries, error) {
	_, text, found := strings.Cut(text, queriesTitle)
	if !found {
		return nil, nil
	}
	m := queriesPattern.FindStringSubmatch(text)
	if m == nil {
		return nil, errors.New("sysbench's summary has no statistics of queries")
	}
	var n [8]uint64
	for i := range n {
		n[i], _ = strconv.ParseUint(m[i+1], 10, 63) // the pattern is that of a number
	}
	q := &queries{n[0], n[1], n[2], n[3], n[4], n[6], n[7]}
	if q.read+q.written+q.other != q.total || n[5] != q.total {
		return nil, fmt.Errorf("sysbench's summary has %d queries, and %d that read, %d that write and %d others", q.total, q.read, q.written, q.other)
	}
	return q, nil
}

// find returns a number of the summary, 0 without it.
func find(p *regexp.Regexp, text string) float64 {
	m := p.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(m[1], 64) // the pattern is that of a number
	return n
}

// halfDigit is half of the last digit of latencies in the summary, in milliseconds.
const halfDigit = 0.005

// firstBucket is the lowest value, in milliseconds. It holds all shorter latencies too.
const firstBucket = 0.001

// parseHistogram reads the buckets. Each stands for its middle, which for the last one may exceed the longest latency: that one is exact. Of the first one, the
// sum of all latencies tells the mean. Longest and sum are in milliseconds.
func parseHistogram(text string, longest, sum float64) (*stat.Histogram, error) {
	h := &stat.Histogram{}
	_, text, _ = strings.Cut(text, histogramTitle)
	_, text, _ = strings.Cut(text, histogramHead)
	_, text, _ = strings.Cut(text, "\n")
	var shortest, slowest uint64
	var last float64
	for line := range strings.Lines(text) {
		m := bucketPattern.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			break
		}
		millis, _ := strconv.ParseFloat(m[1], 64) // the pattern is that of a number
		n, err := strconv.ParseUint(m[2], 10, 63)
		if err != nil || n > countMax || shortest+slowest+h.Count()+n > countMax {
			return nil, fmt.Errorf("read sysbench's histogram: %.80q", line)
		}
		if shortest == 0 && slowest == 0 && h.Count() == 0 && millis <= firstBucket {
			shortest = n
			continue
		}
		h.RecordN(inNanos(min(last, longest+halfDigit)), slowest)
		last, slowest = millis, n
	}
	if slowest > 0 { // of these the slowest of all is known
		h.RecordN(inNanos(min(last, longest+halfDigit)), slowest-1)
		h.Record(inNanos(longest))
	}
	if shortest > 0 {
		if sum <= 0 {
			return nil, errors.New("sysbench's summary has no sum of latencies")
		}
		mean := (sum*1e6 - h.Sum()) / float64(shortest)
		h.RecordN(uint64(math.Round(min(max(mean, 1), firstBucket*1e6))), shortest)
	}
	return h, nil
}

func inNanos(millis float64) uint64 { return uint64(math.Round(millis * 1e6)) }
