package target

import (
	"net/url"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v4"
)

// SourceChart is a chart of the samples of a source, in the section of reports on what the storage counted.
type SourceChart struct {
	Title string `json:"title"`
	// Query is PromQL on the samples of the source. $__rate_interval is a window that always has two readings.
	Query string `json:"query"`
	Unit  string `json:"unit,omitempty"` // "IOPS", "B/s", "s", "%"; "" is a plain number
}

// Bounds of charts and parameters.
const (
	sourceChartsMax = 16
	sourceParamsMax = 16 // names, and values of each
)

var (
	sourceTitle = regexp.MustCompile(`^\S.{0,79}$`)
	sourceUnit  = regexp.MustCompile(`^[A-Za-zµ%][A-Za-z0-9µ/ ]{0,11}$`)
)

func (p sourceParser) charts(e entry) []SourceChart {
	if e.value.Kind != yaml.SequenceNode || len(e.value.Content) == 0 || len(e.value.Content) > sourceChartsMax {
		p.errorf(e.value, "target-type", "", "charts: want a list of 1 to %d charts, found %s", sourceChartsMax, p.found(e.value))
		return nil
	}
	var list []SourceChart
	for _, item := range e.value.Content {
		var c SourceChart
		p.record(entry{item, item}, "chart",
			field{"title", func(e entry) { c.Title = p.matching(e, sourceTitle, "a text of at most 80 characters") }, true},
			field{"query", func(e entry) { c.Query = p.text(e) }, true},
			field{key: "unit", read: func(e entry) { c.Unit = p.matching(e, sourceUnit, "a unit such as IOPS, B/s, s or %") }})
		if slices.ContainsFunc(list, func(other SourceChart) bool { return other.Title == c.Title && c.Title != "" }) {
			p.errorf(item, "target-source", "", "charts: duplicate title %q", c.Title)
		}
		list = append(list, c)
	}
	return list
}

// params reads the parameters of a URL: a text or a list of texts for each name.
func (p sourceParser) params(e entry) url.Values {
	entries := p.entries(e.value, "params", nil)
	if len(entries) > sourceParamsMax {
		p.errorf(e.value, "target-number", "", "params: more than %d entries", sourceParamsMax)
		return nil
	}
	out := url.Values{}
	for _, inner := range entries {
		if inner.value.Kind != yaml.SequenceNode {
			out.Add(inner.key.Value, p.text(inner))
			continue
		}
		if len(inner.value.Content) > sourceParamsMax {
			p.errorf(inner.value, "target-number", "", "params: more than %d values", sourceParamsMax)
			continue
		}
		for _, n := range inner.value.Content {
			out.Add(inner.key.Value, p.text(entry{inner.key, n}))
		}
	}
	return out
}
