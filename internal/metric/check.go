package metric

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// QueryError is a fault in a query of a scenario.
type QueryError struct {
	Offset, Length int // of the fault in the query as written, in bytes; -1 and 0 if its place is unknown
	Reason         string
}

func (e *QueryError) Error() string { return e.Reason }

// CheckQuery parses a query of a scenario, including macros, as for a result of that group. It returns nil or a *QueryError.
func CheckQuery(query, group string) error {
	if _, err := Expand(query, "run", group); err != nil {
		at := macroPattern.FindStringIndex(query)
		return &QueryError{Offset: at[0], Length: at[1] - at[0], Reason: err.Error()}
	}
	// Fault positions refer to the parsed text, so macros become matchers of the same length.
	expr := macroPattern.ReplaceAllStringFunc(query, func(macro string) string {
		const matcher = `run=""`
		return `run="` + strings.Repeat("x", len(macro)-len(matcher)) + `"`
	})
	tree, err := parser.NewParser(parser.Options{EnableExperimentalFunctions: true}).ParseExpr(expr)
	if err != nil {
		return placed(err, len(query))
	}
	if kind := tree.Type(); kind != parser.ValueTypeScalar && kind != parser.ValueTypeVector {
		return &QueryError{Offset: 0, Length: len(query),
			Reason: fmt.Sprintf("the answer is a %s, and a number or an instant vector is wanted", parser.DocumentedType(kind))}
	}
	return nil
}

// placed extracts position and reason from an error of the parser.
func placed(err error, length int) error {
	var list parser.ParseErrors
	if !errors.As(err, &list) || len(list) == 0 {
		return &QueryError{Offset: -1, Reason: err.Error()}
	}
	first := list[0]
	from := min(max(0, int(first.PositionRange.Start)), length)
	to := min(max(from, int(first.PositionRange.End)), length)
	return &QueryError{Offset: from, Length: to - from, Reason: reason(first.Err)}
}

// reason is the parser's message, without the quotes around it.
func reason(err error) string {
	text := err.Error()
	if plain, quoted := strconv.Unquote(text); quoted == nil {
		return plain
	}
	return text
}
