package metric_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/metric"
)

func TestWithin(t *testing.T) {
	own := map[string]string{"run": "r", "source": `a"b`}
	for query, want := range map[string]string{
		`a`: `a{run="r",source="a\"b"}`,
		`sum by (pool) (rate(reads_total{pool!="x"}[5s])) / on (pool) b{source="other"}`: `sum by (pool) (rate(reads_total{pool!="x",run="r",source="a\"b"}[5s])) / on (pool) b{run="r",source="other"}`,
		`max_over_time(rate(a[5s])[1m:5s]) or vector(0)`:                                 `max_over_time(rate(a{run="r",source="a\"b"}[5s])[1m:5s]) or vector(0)`,
		`{__name__=~"a.*"}`: `{__name__=~"a.*",run="r",source="a\"b"}`,
		`1`:                 `1`,
	} {
		got, err := metric.Within(query, own)
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", query, got, err, want)
		}
		if err := metric.CheckQuery(got, ""); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	}
	if got, err := metric.Within("sum(", own); err == nil {
		t.Errorf("got %s", got)
	}
}
