package audit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/unit"
)

// span prints nanoseconds for a claim.
func span(nanos int64) string { return unit.FormatDuration(time.Duration(nanos)) }

// clock prints a moment of the run's axis as reports do.
func clock(nanos int64) string {
	s := (nanos + 5e8) / 1e9
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// share prints part of whole as a percentage, and a part above zero never as zero.
func share(part, whole uint64) string {
	if whole == 0 {
		return "0 %"
	}
	p := 100 * float64(part) / float64(whole)
	if part > 0 && p < 0.01 {
		return "less than 0.01 %"
	}
	return percent(p / 100)
}

// percent prints a ratio with at most two decimals.
func percent(ratio float64) string {
	text := strconv.FormatFloat(ratio*100, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + " %"
}

// whole prints a count with groups of three digits.
func whole(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
