package interval_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
)

// TestTextsOfEventsAreHidden: a field of an event holds either a name, which is hidden by itself, or text that WithTexts changes.
func TestTextsOfEventsAreHidden(t *testing.T) {
	const secret = "opensesame"
	e := interval.Event{
		Label: secret, Message: secret, Error: secret, Canceled: secret,
		Engine: &interval.Engine{Name: "native", Fallback: &interval.Fallback{From: "io_uring", Why: secret}, Notes: []interval.EngineNote{{Text: secret}}},
	}
	before, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := json.Marshal(e.WithTexts(func(s string) string { return strings.ReplaceAll(s, secret, "***") }))
	if err != nil || strings.Contains(string(hidden), secret) {
		t.Errorf("%s, %v", hidden, err)
	}
	if after, err := json.Marshal(e); err != nil || string(after) != string(before) {
		t.Errorf("the event itself was changed: %s, %v", after, err)
	}
}

// TestGaugeGaps: a gauge without a number is a gap in both forms of reading and writing, never a zero.
func TestGaugeGaps(t *testing.T) {
	iv := interval.Interval{Workload: "w", Gauges: interval.GaugeValues{math.NaN(), 0, 1.5, math.Inf(1)}}
	fast := interval.AppendJSON(nil, &iv)
	slow, err := json.Marshal(iv)
	if err != nil || string(fast) != string(slow) || !strings.Contains(string(fast), `"gauges":[null,0,1.5,null]`) {
		t.Fatalf("%v\n%s\n%s", err, fast, slow)
	}
	var decoder interval.Decoder
	read, err := decoder.Line(fast)
	if err != nil {
		t.Fatal(err)
	}
	var general interval.Interval
	if err := json.Unmarshal(fast, &general); err != nil {
		t.Fatal(err)
	}
	for _, g := range []interval.GaugeValues{read.Gauges, general.Gauges} {
		if len(g) != 4 || !math.IsNaN(g[0]) || g[1] != 0 || g[2] != 1.5 || !math.IsNaN(g[3]) {
			t.Errorf("read %v", g)
		}
	}
	iv.Gauges = make(interval.GaugeValues, interval.GaugesMax+1)
	if _, err := decoder.Line(interval.AppendJSON(nil, &iv)); err == nil {
		t.Error("more gauges than the bound were read")
	}
}
