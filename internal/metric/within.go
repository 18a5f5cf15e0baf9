package metric

import (
	"maps"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Within restricts every selector of a query to series with these labels. A selector that already has a matcher for one of them keeps its own.
// The error is a *QueryError.
func Within(query string, own map[string]string) (string, error) {
	tree, err := parser.NewParser(parser.Options{EnableExperimentalFunctions: true}).ParseExpr(query)
	if err != nil {
		return "", placed(err, len(query))
	}
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			for _, name := range slices.Sorted(maps.Keys(own)) {
				if !slices.ContainsFunc(v.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == name }) {
					v.LabelMatchers = append(v.LabelMatchers, labels.MustNewMatcher(labels.MatchEqual, name, own[name]))
				}
			}
		}
		return nil
	})
	return tree.String(), nil
}
