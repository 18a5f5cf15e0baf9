package planner

import (
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/verb"
)

// checkQueries reports results whose query cannot be parsed. A catalog without a parser accepts all.
func (c *draft) checkQueries() {
	if c.catalog.CheckQuery == nil {
		return
	}
	for _, r := range c.sc.Results {
		if r.Source != scenario.FromQuery || r.Query == "" {
			continue
		}
		if fault := c.catalog.CheckQuery(r.Query, r.Group); fault != nil {
			d := diag.Diagnostic{Code: "bad-query", Pos: r.QueryPos,
				Message: fmt.Sprintf("the query of result %q: %s", r.Name, fault.Reason)}
			c.problems.Add(c.underline(d, r.Query, fault))
		}
	}
}

// underline moves a diagnostic about a query to the position of the fault within it, if the query's line is verbatim in
// the user's text: not folded, rendered or escaped.
func (c *draft) underline(d diag.Diagnostic, query string, fault *verb.QueryFault) diag.Diagnostic {
	if fault.Offset < 0 || fault.Offset > len(query) {
		return d
	}
	start := strings.LastIndexByte(query[:fault.Offset], '\n') + 1
	line, _, _ := strings.Cut(query[start:], "\n")
	lines := strings.Split(c.sc.Source, "\n")
	if line == "" {
		return d
	}
	for i := max(0, d.Pos.Line-1); i < len(lines); i++ {
		if at := strings.Index(lines[i], line); at >= 0 {
			d.Pos.Line, d.Pos.Column = i+1, at+1+fault.Offset-start
			d.Width = max(1, min(fault.Length, len(line)-(fault.Offset-start)))
			return d
		}
	}
	return d
}
