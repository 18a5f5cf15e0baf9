package redis

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/stat"
)

var (
	donePattern   = regexp.MustCompile(`(?m)^ *(\d{1,18}) requests completed in `)
	bucketPattern = regexp.MustCompile(`(?m)^\d+\.\d+% <= (\d{1,12})\.(\d{3}) milliseconds \(cumulative count (\d{1,18})\)`)
)

// parseRound reads what redis-benchmark printed: the number of its requests, and their latencies. It prints two cumulative distributions,
// one with steps of percentiles and one with steps of milliseconds; together they are finer than each. Requests between two steps count as
// the upper one, so that percentiles are upper bounds.
func parseRound(text string) (requests uint64, latencies *stat.Histogram, err error) {
	text = strings.ReplaceAll(text, "\r", "\n")
	done := donePattern.FindAllStringSubmatch(text, -1)
	if len(done) != 1 {
		return 0, nil, fmt.Errorf("redis-benchmark reports %d results, want 1", len(done))
	}
	if requests, err = strconv.ParseUint(done[0][1], 10, 63); err != nil {
		return 0, nil, err
	}
	type step struct{ micros, count uint64 }
	var steps []step
	for _, m := range bucketPattern.FindAllStringSubmatch(text, -1) {
		micros, wrong := strconv.ParseUint(m[1]+m[2], 10, 50)
		count, alsoWrong := strconv.ParseUint(m[3], 10, 63)
		if err := errors.Join(wrong, alsoWrong); err != nil {
			return 0, nil, err
		}
		steps = append(steps, step{micros, count})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.micros, b.micros), cmp.Compare(a.count, b.count)) })
	latencies = &stat.Histogram{}
	var before uint64
	for _, s := range steps {
		if s.count > before { // both distributions round their steps
			latencies.RecordN(s.micros*1000, s.count-before)
			before = s.count
		}
	}
	if before != requests {
		return 0, nil, fmt.Errorf("redis-benchmark reports %d requests and latencies of %d", requests, before)
	}
	return requests, latencies, nil
}
