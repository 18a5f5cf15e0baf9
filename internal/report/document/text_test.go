package document_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// A window in which no load ran has no stalls: they are neither short nor unknown.
func TestStallCells(t *testing.T) {
	stall, none := &result.Stall{ShortestNanos: 10e6, LongestNanos: 2e9, ZeroSeconds: 1}, &result.Stall{ShortestNanos: 10e6}
	ran := func(s *result.Stall) (row document.Statistic) {
		row.Count, row.Stall = 10, s
		return row
	}
	r := &document.Result{Rows: []document.Statistic{ran(stall), ran(none), ran(nil), {}}}
	for i, want := range []string{"2 s (1 s at 0)", "< 10 ms", "unknown", "–"} {
		if cells := r.Texts(r.Rows[i]); cells[len(cells)-1] != want {
			t.Errorf("row %d: %q, want %q", i, cells[len(cells)-1], want)
		}
	}
}
