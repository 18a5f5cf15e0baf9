// Package truth_test compares what a storage system did with what a run records and reports of it.
//
//	a device that does what a case says ──text──▶ Follower ──▶ samples ──▶ charts of the report ─┬─ calculated by hand
//	                                                  └──▶ a real Prometheus, same query ────────┘
//
// Cases are what sources do in reality: counters restart, readings repeat, come late or not at all, clocks are wrong, devices vanish.
package truth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/evaluate/counted"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/testreq"
)

// What each device does, all the time: 100 reads of 2 ms and 4 KiB a second, and a write every five seconds.
const (
	reads       = 100.0
	readSeconds = 0.002
	readBytes   = 4096
	writes      = 0.2
)

// counts are the counters of a device that began at zero so many seconds ago.
func counts(device string, seconds float64, stamp string) string {
	var b strings.Builder
	for _, c := range []struct {
		name  string
		value float64
	}{
		{"reads_completed_total", reads * seconds}, {"read_bytes_total", reads * readBytes * seconds}, {"read_time_seconds_total", reads * readSeconds * seconds},
		{"writes_completed_total", writes * seconds}, {"write_time_seconds_total", writes * seconds}, {"written_bytes_total", writes * 512 * seconds},
	} {
		fmt.Fprintf(&b, "node_disk_%s{device=%q} %g%s\n", c.name, device, c.value, stamp)
	}
	return b.String()
}

// moment is one reading of a source, in seconds since the start of the run.
type moment struct {
	seconds float64
	clock   time.Time // of the source
}

// stamp is a time of the source as exporters write it.
func stamp(t time.Time) string { return fmt.Sprintf(" %d", t.UnixMilli()) }

// want is a value of a chart at a second; NaN if it has none.
type want struct {
	second        int
	chart, series string
	value         float64
}

type scenario struct {
	name  string
	ahead time.Duration
	// text is what the exporter answers; "" is no answer.
	text  func(moment) string
	noDay bool // it sends no Date
	wants []want
}

var none = math.NaN()

// steady is what charts show while a device does what it does all the time.
func steady(seconds ...int) (all []want) {
	for _, s := range seconds {
		all = append(all, want{s, "operations", "read", reads}, want{s, "operations", "write", writes}, want{s, "throughput", "read", reads * readBytes},
			want{s, "latency", "read", 1e9 * readSeconds}, want{s, "latency", "write", none})
	}
	return all
}

const every = 5 * time.Second // a reading

var scenarios = []scenario{
	// It has counted for a long time. A rate needs readings from the whole of its window: after two of them, it would be a third too low.
	{name: "the first readings", text: func(m moment) string { return counts("sda", m.seconds+1e6, "") }, wants: append(steady(8, 9, 30),
		want{4, "operations", "read", none}, want{6, "operations", "read", none}, want{6, "throughput", "read", none}, want{6, "latency", "read", 1e9 * readSeconds})},
	{name: "steady", text: func(m moment) string { return counts("sda", m.seconds, "") }, wants: steady(30, 61, 118)},
	// It restarts at 62 s. The readings at 60, 65 and 70 s are 6000, 300 and 800: 800 operations in 10 s, because what was counted between 60 and
	// 62 s is lost. The latency is right all the time.
	{name: "restart of counters", text: func(m moment) string {
		if m.seconds >= 62 {
			return counts("sda", m.seconds-62, "")
		}
		return counts("sda", m.seconds, "")
	}, wants: append(steady(60, 80), want{70, "operations", "read", 80}, want{70, "latency", "read", 1e9 * readSeconds}, want{70, "throughput", "read", 80 * readBytes})},
	// It measures every 15 s and says so.
	{name: "the same reading again", text: func(m moment) string {
		age := math.Mod(m.seconds, 15)
		return counts("sda", m.seconds-age, stamp(m.clock.Add(-time.Duration(age*1e9))))
	}, wants: steady(60, 74, 110)},
	// Every sixth reading is from 20 s ago.
	{name: "late", text: func(m moment) string {
		if age := 20.0; int(m.seconds)%30 == 25 {
			return counts("sda", m.seconds-age, stamp(m.clock.Add(-time.Duration(age*1e9))))
		}
		return counts("sda", m.seconds, stamp(m.clock))
	}, wants: steady(50, 80, 110)},
	{name: "an hour ahead", ahead: time.Hour, text: func(m moment) string { return counts("sda", m.seconds, stamp(m.clock)) }, wants: steady(30, 61, 118)},
	{name: "an hour behind", ahead: -time.Hour, text: func(m moment) string { return counts("sda", m.seconds, stamp(m.clock)) }, wants: steady(30, 61, 118)},
	{name: "an hour ahead, without a Date", ahead: time.Hour, noDay: true, text: func(m moment) string { return counts("sda", m.seconds, stamp(m.clock)) }, wants: steady(30, 61, 118)},
	// It does not answer from 61 to 79 s and has restarted then.
	{name: "restart of the source", text: func(m moment) string {
		switch {
		case m.seconds > 61 && m.seconds < 79:
			return ""
		case m.seconds >= 79:
			return counts("sda", m.seconds-79, "")
		}
		return counts("sda", m.seconds, "")
	}, wants: append(steady(60, 110), want{75, "operations", "read", none}, want{75, "latency", "read", none},
		want{86, "operations", "read", none}, want{86, "latency", "read", 1e9 * readSeconds})},
	{name: "a device vanishes", text: func(m moment) string {
		if m.seconds > 62 {
			return counts("sda", m.seconds, "")
		}
		return counts("sda", m.seconds, "") + counts("sdb", m.seconds, "")
	}, wants: append(steady(90, 118), want{60, "operations", "read", 2 * reads}, want{60, "latency", "read", 1e9 * readSeconds})},
	{name: "a device appears", text: func(m moment) string {
		if m.seconds < 62 {
			return counts("sda", m.seconds, "")
		}
		return counts("sda", m.seconds, "") + counts("sdb", m.seconds, "")
	}, wants: append(steady(30, 60), want{71, "operations", "read", reads}, want{90, "operations", "read", 2 * reads}, want{118, "throughput", "read", 2 * reads * readBytes})},
}

// source is an exporter whose answers are scripted.
type source struct {
	scenario
	began time.Time
}

func (s *source) Collect(context.Context) (collect.Reading, error) {
	m := moment{time.Since(s.began).Seconds(), time.Now().Add(s.ahead)}
	text := s.text(m)
	if text == "" {
		return collect.Reading{}, errors.New("connection refused")
	}
	samples, err := metric.ParseExposition([]byte(text), "text/plain", nil)
	if err != nil {
		return collect.Reading{}, err
	}
	r := collect.Reading{Clock: m.clock.Truncate(time.Second)}
	if s.noDay {
		r.Clock = time.Time{}
	}
	for _, one := range samples {
		sample := collect.Sample{Name: one.Name, Labels: one.Labels, Value: one.Value}
		if one.AtNanos > 0 {
			sample.At = time.Unix(0, one.AtNanos)
		}
		r.Samples = append(r.Samples, sample)
	}
	return r, nil
}

func (*source) Close() error { return nil }

// record follows a source for two minutes.
func record(t *testing.T, s scenario) (zero time.Time, samples []result.Sample) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		zero = time.Now()
		f := collect.Follower{
			Source: target.Source{Name: s.name, Kind: target.SourceNode}, Interval: every, Zero: zero, Mapping: collect.NewMapping(nil, nil, ""),
			Open:  func(context.Context) (collect.Collector, error) { return &source{s, zero}, nil },
			Sink:  func(list []result.Sample) { samples = append(samples, list...) },
			Event: func(interval.Event) {},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		f.Run(ctx)
	})
	return zero, samples
}

// charts returns the charts of a source, and the store with its samples.
func charts(t *testing.T, name string, zero time.Time, samples []result.Sample) ([]counted.Chart, *metric.Store) {
	t.Helper()
	m := result.Manifest{Run: "r", Created: zero}
	m.Target.Sources = []result.SourceInfo{{Name: name, Kind: target.SourceNode, IntervalNanos: int64(every)}}
	store, err := metric.Open(filepath.Join(t.TempDir(), metric.Dir), m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.AppendSamples(samples); err != nil {
		t.Fatal(err)
	}
	seen := counted.Record{}
	for i := range samples {
		seen.Add(&samples[i])
	}
	return counted.Charts(&m, seen), store
}

// shown is the value that a chart has.
func shown(t *testing.T, w want, list []counted.Chart, store *metric.Store) (value float64, query string) {
	t.Helper()
	i := slices.IndexFunc(list, func(c counted.Chart) bool { return c.Title == w.chart })
	answer, err := store.Instant(t.Context(), list[i].Query, int64(w.second)*1e9)
	if err != nil {
		t.Fatal(err)
	}
	value = none
	for _, s := range answer {
		if s.Labels["direction"] == w.series {
			value = s.Points[0].Value
		}
	}
	return value, list[i].Query
}

func same(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b))
}

// TestTruth: charts show what devices did, as calculated by hand, and a real Prometheus with the samples of the runs gives the same answers.
func TestTruth(t *testing.T) {
	type question struct {
		scenario string
		want
		query string
		at    time.Time
	}
	var questions []question
	var recorded [][]result.Sample
	var zeros []time.Time
	for _, s := range scenarios {
		zero, samples := record(t, s)
		list, store := charts(t, s.name, zero, samples)
		for _, w := range s.wants {
			got, query := shown(t, w, list, store)
			if !same(got, w.value) {
				t.Errorf("%s: %s (%s) at %d s is %v, want %v", s.name, w.chart, w.series, w.second, got, w.value)
			}
			questions = append(questions, question{s.name, w, query, zero.Add(time.Duration(w.second) * time.Second)})
		}
		recorded, zeros = append(recorded, samples), append(zeros, zero)
	}
	ask := prometheus(t, zeros, recorded)
	for _, q := range questions {
		if got := ask(q.query, q.at, q.series); !same(got, q.value) {
			t.Errorf("%s: %s (%s) at %d s is %v in Prometheus, want %v", q.scenario, q.chart, q.series, q.second, got, q.value)
		}
	}
}

// TestManySeries: ten thousand devices of one source add up.
func TestManySeries(t *testing.T) {
	const devices = 10_000
	s := scenario{name: "many", text: func(m moment) string {
		var b strings.Builder
		for i := range devices {
			fmt.Fprintf(&b, "node_disk_reads_completed_total{device=\"d%d\"} %g\n", i, m.seconds*float64(i%3))
		}
		return b.String()
	}}
	zero, samples := record(t, s)
	list, store := charts(t, s.name, zero, samples)
	// A third of them do 0, 1 and 2 a second; there is one more of those that do nothing.
	if got, _ := shown(t, want{100, "operations", "read", 0}, list, store); !same(got, devices/3*1+devices/3*2) {
		t.Errorf("got %v", got)
	}
}

// prometheus starts a real one with the samples of runs, and returns a function that queries it.
func prometheus(t *testing.T, zeros []time.Time, recorded [][]result.Sample) func(query string, at time.Time, direction string) float64 {
	t.Helper()
	dir := t.TempDir()
	families := map[string]map[string][]string{} // name → series → lines
	for i, samples := range recorded {
		for _, s := range samples {
			var labels []string
			for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
				labels = append(labels, fmt.Sprintf("%s=%q", name, s.Labels[name]))
			}
			series := fmt.Sprintf("%s{%s,run=\"r\"}", s.Name, strings.Join(labels, ","))
			if families[s.Name] == nil {
				families[s.Name] = map[string][]string{}
			}
			millis := zeros[i].UnixMilli() + s.AtNanos/1e6
			families[s.Name][series] = append(families[s.Name][series], fmt.Sprintf("%s %s %d.%03d\n", series, strconv.FormatFloat(s.Value, 'g', -1, 64), millis/1000, millis%1000))
		}
	}
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(families)) {
		for _, series := range slices.Sorted(maps.Keys(families[name])) {
			text.WriteString(strings.Join(families[name][series], ""))
		}
	}
	text.WriteString("# EOF\n")
	file, config := filepath.Join(dir, "samples"), filepath.Join(dir, "prometheus.yml")
	for path, content := range map[string][]byte{file: text.Bytes(), config: nil} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := testreq.Program(t, "prometheus")
	if said, err := exec.CommandContext(t.Context(), testreq.Program(t, "promtool"), "tsdb", "create-blocks-from", "openmetrics", file, filepath.Join(dir, "data")).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v: %s", err, said)
	}
	address := fmt.Sprintf("127.0.0.1:%d", testreq.FreePort(t))
	cmd := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--storage.tsdb.retention.time=100y", "--web.listen-address="+address, "--log.level=error")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return func(query string, at time.Time, direction string) float64 {
		var answer struct {
			Status string
			Error  string
			Data   struct {
				Result []struct {
					Metric map[string]string
					Value  [2]any
				}
			}
		}
		for answer.Status == "" {
			response, err := http.Get(fmt.Sprintf("http://%s/api/v1/query?time=%d&query=%s", address, at.Unix(), url.QueryEscape(query)))
			if err != nil {
				if t.Context().Err() != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Millisecond) // it starts
				continue
			}
			body, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			_ = json.Unmarshal(body, &answer) // while it starts it answers with a text
		}
		if answer.Status != "success" {
			t.Fatalf("%s: %s", query, answer.Error)
		}
		for _, r := range answer.Data.Result {
			if r.Metric["direction"] == direction {
				value, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
				if err != nil {
					t.Fatal(err)
				}
				return value
			}
		}
		return none
	}
}
