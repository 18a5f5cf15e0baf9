package redis_test

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/redis"
)

// records are the outputs of two versions for 20,000 requests, with the percentiles of their summaries in nanoseconds. Between two steps the
// upper one counts, so that each has a least and a greatest value.
var records = map[string]map[float64][2]float64{
	"7.0.15-get.txt": {0.5: {39e3, 40e3}, 0.95: {71e3, 80e3}, 0.99: {151e3, 176e3}, 1: {4335e3, 4400e3}},
	"7.4.1-get.txt":  {0.5: {47e3, 48e3}, 0.95: {63e3, 72e3}, 0.99: {79e3, 88e3}, 1: {7415e3, 7500e3}},
}

func TestParseRound(t *testing.T) {
	for name, percentiles := range records {
		n, h, err := redis.ParseRound(loadtest.Recorded(t, name))
		if err != nil || n != 20000 || h.Count() != n {
			t.Fatalf("%s: %d requests: %v", name, n, err)
		}
		for q, want := range percentiles {
			if got := h.Quantile(q); got < want[0]*0.98 || got > want[1]*1.02 {
				t.Errorf("%s: quantile %g is %g ns, want %v", name, q, got, want)
			}
		}
	}
}

// Output that was cut is refused, or was cut behind its first distribution, which is complete.
func TestCutRounds(t *testing.T) {
	for name := range records {
		text := loadtest.Recorded(t, name)
		complete := strings.Index(text, "100.000% <=")
		for end := range text[:complete] {
			if strings.Contains(text[:end], "count 20000") {
				break
			}
			if _, _, err := redis.ParseRound(text[:end]); err == nil {
				t.Fatalf("%s: %q is read", name, text[:end])
			}
		}
		if _, _, err := redis.ParseRound(text + text); err == nil {
			t.Errorf("%s: two results are read as one", name)
		}
	}
}

func FuzzParseRound(f *testing.F) {
	for name := range records {
		f.Add(loadtest.Recorded(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, h, err := redis.ParseRound(text); err == nil && h.Count() != n {
			t.Errorf("%d requests, %d latencies", n, h.Count())
		}
	})
}

func FuzzCounters(f *testing.F) {
	f.Add("1|2|3|4|5")
	f.Fuzz(func(t *testing.T, line string) {
		if redis.CountersAnswer(line) == nil && strings.Count(line, "|") != 4 {
			t.Errorf("%q is read", line)
		}
	})
}

func TestOptions(t *testing.T) {
	for want, options := range map[string]map[string]string{
		`"flushall" is not`:            {"commands": "get flushall"},
		"listed twice":                 {"commands": "get get"},
		"none is listed":               {"commands": ", "},
		"without appendonly":           {"appendfsync": "always"},
		`did you mean "appendonly"`:    {"appendonli": "yes"},
		"is not yes, no":               {"appendonly": "true"},
		"is not a size such as":        {"maxmemory": "100"},
		"are more than clients":        {"clients": "2", "threads": "3"},
		"is not a number from 1 to 64": {"io_threads": "0"},
		"value_size":                   {"value_size": "1GiB"},
		`no option "dir"`:              {"dir": "/etc"},
	} {
		if _, err := (redis.Generator{}).Plan(workload(t, options)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", options, err, want)
		}
	}
	w := workload(t, map[string]string{"keys": "1000000", "appendonly": "yes"})
	w.Scale = load.Scale{Factor: 0.01}
	p, err := redis.Generator{}.Plan(w)
	if err != nil || p.ScaledFrom == 0 || p.Extents[0].Length > 100<<20 {
		t.Errorf("%+v: %v", p, err)
	}
	if len(p.Jobs) != 2 || p.Depth() != 16 { // rounds of get and set take turns
		t.Errorf("queue depth %d of %d jobs, want 16 of 2", p.Depth(), len(p.Jobs))
	}
	if text := strings.Join(p.Notes, "\n"); !strings.Contains(text, "appendfsync: always") {
		t.Errorf("notes: %s", text)
	}
}
