package collect_test

import (
	"math"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/collect"
)

// TestCounters reads a counter and its base through increases, wraps at 32 and 64 bits, a restart, and a repeated reading.
func TestCounters(t *testing.T) {
	at := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		values, base       []uint64
		rate, mean, total  float64 // NaN: none
		least              float64
		repeat, forgetting bool
	}{
		"first":                   {values: []uint64{100}, base: []uint64{10}, rate: math.NaN(), mean: math.NaN(), total: 100},
		"increases":               {values: []uint64{100, 300}, base: []uint64{10, 30}, rate: 20, mean: 10, total: 300},
		"wrap at 32":              {values: []uint64{math.MaxUint32 - 99, 100}, base: []uint64{10, 30}, rate: 20, mean: 10, total: math.MaxUint32 + 101},
		"wrap at 64":              {values: []uint64{math.MaxUint64 - 99, 100}, base: []uint64{10, 30}, rate: 20, mean: 10, total: 200},
		"restart":                 {values: []uint64{5000, 70}, base: []uint64{10, 30}, rate: math.NaN(), mean: math.NaN(), total: 5070},
		"after restart":           {values: []uint64{5000, 70, 170}, base: []uint64{10, 30, 40}, rate: 10, mean: 10, total: 5170},
		"restart, not a wrap":     {values: []uint64{4e9, 70}, base: []uint64{5000, 30}, rate: math.NaN(), mean: math.NaN(), total: 4e9 + 70},
		"restart, not a wrap: 64": {values: []uint64{5e9, 7e9, 70}, base: []uint64{5, 30, 40}, rate: math.NaN(), mean: math.NaN(), total: 7e9 + 70},
		"base restarts":           {values: []uint64{100, 300}, base: []uint64{1000, 3}, rate: math.NaN(), mean: math.NaN(), total: 400},
		"no operations":           {values: []uint64{100, 100}, base: []uint64{10, 10}, rate: 0, mean: math.NaN(), total: 100},
		"few":                     {values: []uint64{100, 300}, base: []uint64{10, 19}, rate: 20, mean: math.NaN(), total: 300, least: 10},
		"enough":                  {values: []uint64{100, 300}, base: []uint64{10, 20}, rate: 20, mean: 20, total: 300, least: 10},
		"repeated":                {values: []uint64{100, 300, 300}, base: []uint64{10, 30, 30}, rate: 20, mean: 10, total: 300, repeat: true},
		"gone":                    {values: []uint64{100, 300}, base: []uint64{10, 30}, rate: math.NaN(), mean: math.NaN(), total: math.NaN(), forgetting: true},
	} {
		t.Run(name, func(t *testing.T) {
			counters := collect.NewCounters()
			for i := range c.values {
				when := at.Add(time.Duration(i) * 10 * time.Second)
				if c.repeat && i == len(c.values)-1 {
					when = at.Add(time.Duration(i-1) * 10 * time.Second)
				}
				counters.Begin()
				counters.Add("v", map[string]uint64{"latency": c.values[i], "ops": c.base[i]}, when)
			}
			if c.forgetting {
				counters.Begin()
			}
			total, hasTotal := counters.Total(collect.Key("v", "latency"))
			rate, hasRate := counters.Rate(collect.Key("v", "latency"))
			mean, hasMean := counters.Mean(collect.Key("v", "latency"), collect.Key("v", "ops"), c.least)
			for what, v := range map[string]struct {
				got  float64
				has  bool
				want float64
			}{"total": {total, hasTotal, c.total}, "rate": {rate, hasRate, c.rate}, "mean": {mean, hasMean, c.mean}} {
				if v.has == math.IsNaN(v.want) || v.has && v.got != v.want {
					t.Errorf("%s: got %v %v, want %v", what, v.got, v.has, v.want)
				}
			}
		})
	}
}

// TestCountersAfterAbsence: a reading that failed, or that an object is missing from, costs no count. Totals go on, and the next rate is that of the
// whole time since the last value.
func TestCountersAfterAbsence(t *testing.T) {
	at := time.Unix(1000, 0)
	counters := collect.NewCounters()
	read := func(seconds int, ops uint64) {
		counters.Begin()
		counters.Add("v", map[string]uint64{"ops": ops}, at.Add(time.Duration(seconds)*time.Second))
	}
	read(0, 5_000_000)
	read(10, 1_000) // it restarted
	counters.Begin()
	key := collect.Key("v", "ops")
	if _, ok := counters.Total(key); ok {
		t.Error("an object that is missing has a total")
	}
	read(30, 3_000)
	total, _ := counters.Total(key)
	rate, hasRate := counters.Rate(key)
	if total != 5_003_000 || !hasRate || rate != 100 {
		t.Errorf("total %v, rate %v %v, want 5003000 and 100", total, rate, hasRate)
	}
	for range 20 {
		counters.Begin()
	}
	read(300, 4_000)
	if total, _ := counters.Total(key); total != 4_000 {
		t.Errorf("total %v of an object that was gone, want 4000", total)
	}
}
