package scenario_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/scenario"
)

func TestThresholdsEndInTheUnitOfTheResult(t *testing.T) {
	for _, c := range []struct {
		text, resultType, statistic, operator string
		value                                 float64
	}{
		{"p99 < 5 ms", "latency", "p99", "<", 5e6},
		{"p99.9<=1.5s", "latency", "p99.9", "<=", 1.5e9},
		{"median < 250us", "latency", "median", "<", 250e3},
		{"p50 < 250 µs", "latency", "median", "<", 250e3},
		{"mean >= 10k", "iops", "mean", ">=", 10e3},
		{"Mean >= 10K", "iops", "mean", ">=", 10e3},
		{"avg > 1.5M", "iops", "mean", ">", 1.5e6},
		{"min > 9000 IOPS", "iops", "min", ">", 9000},
		{"mean > 1.2 GB/s", "bandwidth", "mean", ">", 1.2e9},
		{"mean > 100 MiB/s", "bandwidth", "mean", ">", 100 << 20},
		{"mean > 1e6", "bandwidth", "mean", ">", 1e6},
		{"max == 0", "errors", "max", "==", 0},
		{"min != 0", "active", "min", "!=", 0},
		{"cv < 5%", "iops", "cv", "<", 0.05},
		{"cv < 0.05", "latency", "cv", "<", 0.05},
		{"time_to_complete < 10 m", "bandwidth", "time_to_complete", "<", 600},
		{"time_to_complete < 2h", "iops", "time_to_complete", "<", 7200},
		{"time_to_complete < 90", "iops", "time_to_complete", "<", 90},
		{"p95 < -1", "generic", "p95", "<", -1},
		{"mean < 2.5e-3", "generic", "mean", "<", 2.5e-3},
		{"no worse than baseline", "iops", "", scenario.NoWorse, 0.1},
		{" P50 no worse than baseline", "latency", "median", scenario.NoWorse, 0.1},
		{"p99.9 no worse than baseline by 2.5 %", "latency", "p99.9", scenario.NoWorse, 0.025},
	} {
		x, err := scenario.ParseThreshold(c.text, c.resultType)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if x.Statistic != c.statistic || x.Operator != c.operator || math.Abs(x.Value-c.value) > 1e-9*math.Abs(c.value) {
			t.Errorf("%q: %s %s %v, want %s %s %v", c.text, x.Statistic, x.Operator, x.Value, c.statistic, c.operator, c.value)
		}
	}
}

func TestThresholdsThatAreRefused(t *testing.T) {
	var b strings.Builder
	for _, c := range []struct{ text, resultType string }{
		{"", "iops"}, {"p99", "iops"}, {"< 5", "iops"}, {"p99 <", "iops"}, {"p99 < ms", "latency"}, {"p99 < 5", "latency"},
		{"p99 < 5 MB/s", "latency"}, {"mean > 5 ms", "iops"}, {"p98 < 5 ms", "latency"}, {"p99 = 5 ms", "latency"},
		{"p99 =< 5 ms", "latency"}, {"p99 < 5 < 6", "iops"}, {"mean > nan", "iops"}, {"mean > 1e999", "iops"}, {"mean > inf", "iops"},
		{"mean > 10 %", "iops"}, {"maen > 10", "iops"}, {"mean > 0x10", "iops"}, {"time_to_complete < 3 weeks", "iops"},
		{"no worse than baseline", "errors"}, {"p99 no worse than baseline", "iops"}, {"no worse than baseline by 5", "iops"},
		{"no worse than baseline by 100 %", "iops"}, {"max no worse than baseline", "latency"}, {"no worse than base", "iops"},
		{"time_to_complete no worse than baseline", "iops"}, {"dip no worse than baseline by 5 %", "latency"}, {"No worse then baseline", "iops"},
	} {
		x, err := scenario.ParseThreshold(c.text, c.resultType)
		if err == nil {
			t.Errorf("%q is taken as %+v", c.text, x)
			continue
		}
		fmt.Fprintf(&b, "%s: %v\n", c.resultType, err)
	}
	golden(t, "testdata/expectations.golden", b.String())
}

func TestAMissingValueMeetsNoThreshold(t *testing.T) {
	for _, op := range []string{"<", "<=", ">", ">=", "==", "!="} {
		x, err := scenario.ParseThreshold("mean "+op+" 5", "iops")
		if err != nil {
			t.Fatal(err)
		}
		if x.Holds(math.NaN()) {
			t.Errorf("nan %s 5 holds", op)
		}
		want := map[string][3]bool{"<": {true, false, false}, "<=": {true, true, false}, ">": {false, false, true},
			">=": {false, true, true}, "==": {false, true, false}, "!=": {true, false, true}}[op]
		for i, v := range []float64{4, 5, 6} {
			if x.Holds(v) != want[i] {
				t.Errorf("%v %s 5 is %v", v, op, x.Holds(v))
			}
		}
	}
}

func FuzzParseThreshold(f *testing.F) {
	for _, s := range []string{"p99 < 5 ms", "mean >= 10k", "time_to_complete < 10 m", "cv<5%", "p99.9 != -1e9 GB/s", "<<", "mean == 0x"} {
		f.Add(s, "latency")
		f.Add(s, "bandwidth")
	}
	f.Fuzz(func(t *testing.T, text, resultType string) {
		x, err := scenario.ParseThreshold(text, resultType)
		if err == nil && (x.Statistic == "" || x.Operator == "" || math.IsNaN(x.Value) || math.IsInf(x.Value, 0)) {
			t.Fatalf("%q is taken as %+v", text, x)
		}
	})
}
