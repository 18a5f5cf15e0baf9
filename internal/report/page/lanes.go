package page

import (
	"math"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// inLanes reports whether a result is drawn with one lane per VM: the activity of single VMs, which is 0 or 1. Sums over VMs are
// drawn as lines.
func inLanes(r *document.Result) bool {
	if r.Type != "active" {
		return false
	}
	drawn := 0
	for i := range r.Series {
		s := &r.Series[i]
		if len(s.Points) == 0 {
			continue
		}
		if s.Name == "all" || !isActivity(s.Points) {
			return false
		}
		drawn++
	}
	return drawn > 0
}

func isActivity(points result.Points) bool {
	for _, p := range points {
		if p.Value != 0 && p.Value != 1 && !math.IsNaN(p.Value) {
			return false
		}
	}
	return true
}
