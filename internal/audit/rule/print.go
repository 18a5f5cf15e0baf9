package rule

import (
	"time"

	"github.com/braggdev/bragg/internal/unit"
)

// Span prints nanoseconds for a claim.
func Span(nanos int64) string { return unit.FormatDuration(time.Duration(nanos)) }

// Share prints part of whole as a percentage; a part above zero is never printed as zero.
func Share(part, whole uint64) string {
	if whole == 0 {
		return "0 %"
	}
	p := 100 * float64(part) / float64(whole)
	if part > 0 && p < 0.01 {
		return "less than 0.01 %"
	}
	return unit.FormatPercent(p / 100)
}
