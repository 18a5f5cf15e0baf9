package fiojob_test

import (
	"fmt"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

func TestDistributions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"zipf:1.2:0.5":                     "zipf 1.2 0.5 true []",
		"pareto:0.8":                       "pareto 0.8 0 false []",
		"normal:10:0":                      "normal 10 0 true []",
		"zoned:60/10:30/20:8/30:2/40":      "zoned 0 0 false [{60 10 0} {30 20 0} {8 30 0} {2 40 0}]",
		"zoned:60:40/10":                   "zoned 0 0 false [{60 90 0} {40 10 0}]",
		"zoned:20:30:50/40":                "zoned 0 0 false [{20 30 0} {30 30 0} {50 40 0}]",
		"zoned:100/50":                     "zoned 0 0 false [{100 50 0}]",
		"zoned_abs:60/8m:40/16k":           "zoned_abs 0 0 false [{60 0 8388608} {40 0 16384}]",
		"zoned_abs:60/8m:40":               "zoned_abs 0 0 false [{60 0 8388608} {40 0 0}]",
		"zoned:60/10:40/90,30/10%:70/90":   "zoned 0 0 false [{60 10 0} {40 90 0}]",
		"zoned:60/10:40/90,30/10:70/90,10": "",
	} {
		f, diags := fiojob.Parse("a.fio", "[a]\nrandom_distribution="+text+"\n", fiojob.Options{})
		if want == "" {
			if !diags.HasErrors() {
				t.Errorf("%s is taken", text)
			}
			continue
		}
		if err := diags.Err(); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		d := f.Jobs()[0].Distribution
		if got := fmt.Sprint(d.Kind, " ", d.Parameter, " ", d.Centre, " ", d.HasCentre, " ", d.Zones[fiojob.Read]); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{
		"zipf:1", "zipf:1.2:1.5", "zipf:1.2:-1", "zipf:1.2:x", "pareto:1", "normal:100", "zoned", "zoned:", "zoned:30/90", "zoned:60/60:40/60",
		"zoned:60.5/10:39.5/90", "zoned:/50:60/50", "zoned:50/100:50", "zoned_abs:60/25%:40/75%", "zoned:,60/10:40/90",
	} {
		if _, diags := fiojob.Parse("a.fio", "[a]\nrandom_distribution="+text+"\n", fiojob.Options{}); !diags.HasErrors() {
			t.Errorf("%s is taken", text)
		}
	}
	j := only(t, "[a]\nrandom_distribution=zoned:60/10:40/90,30/10:70/90\n")
	if z := j.Distribution.Zones; z[fiojob.Write][0].AccessPercent != 30 || z[fiojob.Trim][0].AccessPercent != 30 {
		t.Errorf("zones by direction: %v", z)
	}
}
