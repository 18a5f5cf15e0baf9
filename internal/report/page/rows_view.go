package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/report/document"
)

// rowsMax is how many rows of statistics the page has for one result. A hundred VMs in a hundred windows have ten thousand rows of half a
// kilobyte, too many for a page; other formats have them all.
const rowsMax = 400

const noStatistics = "No window between events holds a whole interval of these values, so there are no statistics: make the phases longer, or read the source more often."

// windowsOf groups the rows of a result by window and says which rows the page leaves out. Those of the whole result and of what has one
// series stay longest; of many series in one window, it keeps the lowest, the median and the highest mean, then only the highest.
//
// A table without a number says nothing: values of a source that is slower than the windows are long have none.
func windowsOf(rows []document.Statistic) (windows []windowView, left string) {
	if len(rows) > 0 && !slices.ContainsFunc(rows, func(s document.Statistic) bool { return s.Count > 0 }) {
		return nil, noStatistics
	}
	for i := range rows {
		if i == 0 || rows[i].Window != rows[i-1].Window {
			windows = append(windows, windowView{})
		}
		w := &windows[len(windows)-1]
		w.Rows = append(w.Rows, &rows[i])
	}
	const all = "Other formats of the report (CSV, JSON) have all %d rows."
	for _, step := range []struct {
		keep int
		text string
	}{
		{3, "Of each window between steps, the series with the lowest, the median and the highest mean are listed. "},
		{1, "Of each window between steps, the series with the highest mean is listed. "},
	} {
		before := countRows(windows)
		if before <= rowsMax {
			return windows, left
		}
		for i := range windows {
			if windows[i].Rows[0].Window != "" {
				windows[i].Rows = extremes(windows[i].Rows, step.keep)
			}
		}
		if countRows(windows) < before {
			left = step.text + fmt.Sprintf(all, len(rows))
		}
	}
	if n := countRows(windows); n > rowsMax && len(windows) > 1 {
		for n > rowsMax && len(windows) > 1 {
			n -= len(windows[len(windows)-1].Rows)
			windows = windows[:len(windows)-1]
		}
		left = fmt.Sprintf("Only the first %d windows are listed. ", len(windows)-1) + cmp.Or(left, fmt.Sprintf(all, len(rows)))
	}
	return windows, left
}

// TableText is the heading of a long table of statistics.
func (f *figureView) TableText() string {
	if f.LeftOut == "" {
		return fmt.Sprintf("Statistics of all series and windows (%d rows)", len(f.Result.Rows))
	}
	return fmt.Sprintf("Statistics of series and windows (%d of %d rows)", countRows(f.Windows), len(f.Result.Rows))
}

func countRows(windows []windowView) (n int) {
	for _, w := range windows {
		n += len(w.Rows)
	}
	return n
}

// extremes keeps, of the rows of each kind, three or one by their means. Rows without a mean are left out where others have one.
func extremes(rows []*document.Statistic, keep int) (kept []*document.Statistic) {
	for len(rows) > 0 {
		kind := rows[0].Kind
		same := slices.DeleteFunc(slices.Clone(rows), func(r *document.Statistic) bool { return r.Kind != kind })
		rows = slices.DeleteFunc(slices.Clone(rows), func(r *document.Statistic) bool { return r.Kind == kind })
		slices.SortStableFunc(same, func(a, b *document.Statistic) int { return cmp.Compare(float64(a.Mean), float64(b.Mean)) }) // NaN is first
		known := slices.IndexFunc(same, func(r *document.Statistic) bool { return !math.IsNaN(float64(r.Mean)) })
		if same = same[max(known, 0):]; len(same) > keep {
			if last := len(same) - 1; keep == 1 {
				same = same[last:]
			} else {
				same = []*document.Statistic{same[0], same[last/2], same[last]}
			}
		}
		kept = append(kept, same...)
	}
	return kept
}
