package document

import (
	"cmp"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/result"
)

// spreadSeriesMin is how many series of one kind a result needs for a Spread.
const spreadSeriesMin = 9

// Spread describes the means of many series in one window: the lowest and highest series, and the median.
type Spread struct {
	Window     string        `json:"window"`
	Kind       string        `json:"kind,omitempty"`
	Series     int           `json:"series"` // with data in this window
	LowestName string        `json:"lowest_series"`
	Lowest     result.Number `json:"lowest_mean"`
	Median     result.Number `json:"median_of_means"`
	Highest    result.Number `json:"highest_mean"`
	HighName   string        `json:"highest_series"`
	Max        result.Number `json:"max"` // of all series
}

func spread(rows []Statistic) []Spread {
	type key struct{ window, kind string }
	var keys []key
	groups := map[key][]*Statistic{}
	for i := range rows {
		if rows[i].Series == "all" {
			continue // the sum of the others
		}
		k := key{rows[i].Window, rows[i].Kind}
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], &rows[i])
	}
	var list []Spread
	for _, k := range keys {
		if len(groups[k]) < spreadSeriesMin {
			continue
		}
		list = append(list, spreadOf(k.window, k.kind, groups[k]))
	}
	return list
}

func spreadOf(window, kind string, rows []*Statistic) Spread {
	nan := result.Number(math.NaN())
	s := Spread{Window: window, Kind: kind, Lowest: nan, Median: nan, Highest: nan, Max: nan}
	rows = slices.DeleteFunc(slices.Clone(rows), func(r *Statistic) bool { return math.IsNaN(float64(r.Mean)) })
	if s.Series = len(rows); s.Series == 0 {
		return s
	}
	slices.SortStableFunc(rows, func(a, b *Statistic) int { return cmp.Compare(a.Mean, b.Mean) })
	first, last := rows[0], rows[len(rows)-1]
	s.LowestName, s.Lowest = first.Series, first.Mean
	s.HighName, s.Highest = last.Series, last.Mean
	s.Median = (rows[(len(rows)-1)/2].Mean + rows[len(rows)/2].Mean) / 2
	for _, r := range rows {
		if math.IsNaN(float64(s.Max)) || r.Max > s.Max {
			s.Max = r.Max
		}
	}
	return s
}
