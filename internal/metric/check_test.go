package metric_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/metric"
)

func TestCheckQuery(t *testing.T) {
	for _, c := range []struct {
		query, group string
		at           string // what the fault is under; "" where there is none
		reason       string
	}{
		{query: `sum(rate(nothing[5s]))`},
		{query: `1 + 2`},
		{query: `sum(rate(x{__curie_filter_scenario__,__curie_filter_vm_group__}[5s]))`, group: "g"},
		{query: `sum(rate(nothing[5s])`, at: "", reason: "unclosed left parenthesis"},
		{query: `sum(rate(x{__curie_filter_scenario__}[5s])) +`, at: "", reason: "unexpected end of input"},
		{query: `sum(rate(x{__curie_filter_scenario__}[5s]) ) oops`, at: "oops", reason: "oops"},
		{query: `x{__curie_filter_node__}`, at: "__curie_filter_node__", reason: "no macro"},
		{query: `x{__curie_filter_vm_group__}`, at: "__curie_filter_vm_group__", reason: "needs a vm_group"},
		{query: `x[5m]`, at: "x[5m]", reason: "range vector"},
	} {
		err := metric.CheckQuery(c.query, c.group)
		if c.reason == "" {
			if err != nil {
				t.Errorf("%s: %v", c.query, err)
			}
			continue
		}
		var told *metric.QueryError
		if !errors.As(err, &told) || !strings.Contains(told.Reason, c.reason) {
			t.Errorf("%s: error %v, want %q", c.query, err, c.reason)
			continue
		}
		if at := c.query[told.Offset : told.Offset+told.Length]; c.at != "" && !strings.HasPrefix(at, c.at) {
			t.Errorf("%s: the fault is at %q, want %q", c.query, at, c.at)
		}
	}
}
