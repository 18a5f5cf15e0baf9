package metric_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/result/resulttest"
	"github.com/braggdev/bragg/internal/stat"
)

func instant(t testing.TB, s *metric.Store, expr string, at int64) []metric.Series {
	t.Helper()
	got, err := s.Instant(context.Background(), expr, at)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b metric.Series) int { return strings.Compare(a.Name(), b.Name()) })
	return got
}

func one(t testing.TB, s *metric.Store, expr string, at int64) float64 {
	t.Helper()
	got := instant(t, s, expr, at)
	if len(got) != 1 {
		t.Fatalf("%s: %d series: %+v", expr, len(got), got)
	}
	return got[0].Points[0].Value
}

// TestRebuildEqualsLive: a store that was filled while the run went on and one that was made of its bundle answer alike.
func TestRebuildEqualsLive(t *testing.T) {
	p := resulttest.Params{VMs: 6, Duration: 30 * time.Second, IOPS: 50}
	dir := filepath.Join(t.TempDir(), "run")
	w, err := result.Create(dir, resulttest.Manifest(p))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := resulttest.Write(w, p); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	live, err := metric.Open(filepath.Join(t.TempDir(), metric.Dir), b.Manifest())
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	for e := range b.Events() {
		live.AppendEvent(e)
	}
	for iv := range b.Intervals() {
		if err := live.AppendInterval(&iv); err != nil {
			t.Fatal(err)
		}
	}
	for s := range b.Samples() {
		if err := live.AppendSamples([]result.Sample{s}); err != nil {
			t.Fatal(err)
		}
	}
	rebuilt, err := metric.Rebuild(context.Background(), b, filepath.Join(dir, metric.Dir))
	if err != nil {
		t.Fatal(err)
	}
	defer rebuilt.Close()
	for _, expr := range []string{
		`sum by (vm, node, direction) (irate(bragg_operations_total[3s]))`, `sum(rate(node_disk_reads_completed_total[20s]))`,
		`histogram_quantile(0.9, sum(rate(bragg_response_time_seconds[5s])))`, `bragg_node_value`,
	} {
		w := metric.Window{FromNanos: 2e9, ToNanos: 29e9, Step: time.Second}
		x, errX := live.Range(context.Background(), expr, w)
		y, errY := rebuilt.Range(context.Background(), expr, w)
		if errX != nil || errY != nil || len(x) == 0 || len(x) != len(y) {
			t.Fatalf("%s: %d series, %v; %d series, %v", expr, len(x), errX, len(y), errY)
		}
		for i := range x {
			if !reflect.DeepEqual(x[i].Labels, y[i].Labels) || !slices.EqualFunc(x[i].Points, y[i].Points, samePoint) {
				t.Errorf("%s: %v is %v live and %v rebuilt", expr, x[i].Labels, x[i].Points, y[i].Points)
			}
		}
	}
	if got := instant(t, rebuilt, `count by (node) (bragg_operations_total{direction="read"})`, 5e9); len(got) != 4 || got[1].Labels["node"] != "node-2" {
		t.Errorf("VMs carry their node: %+v", got)
	}
	// X-Ray's labels of the run are on what comes from loads and on what is scraped.
	m := b.Manifest()
	own := fmt.Sprintf(`{scenario_id=%q, scenario_name=%q, cluster_name=%q}`, m.Run, m.Scenario.Name, m.Target.Name)
	for _, name := range []string{"bragg_operations_total", "node_disk_reads_completed_total"} {
		some, all := instant(t, rebuilt, "count("+name+own+")", 5e9), instant(t, rebuilt, "count("+name+")", 5e9)
		if m.Target.Name == "" || len(some) != 1 || len(all) != 1 || some[0].Points[0].Value != all[0].Points[0].Value {
			t.Errorf("%s with %s: %+v of %+v", name, own, some, all)
		}
		if called := some[0].Name(); called != "all" {
			t.Errorf("a sum is called %q", called)
		}
	}
	// A dead VM stops: its counter is gone from rates, not flat.
	if got := instant(t, rebuilt, `sum by (node) (irate(bragg_operations_total[2s]))`, 13e9); len(got) != 3 {
		t.Errorf("nodes with traffic while one is dead: %+v", got)
	}
}

func samePoint(a, b result.Point) bool {
	same := a.Value == b.Value || math.IsNaN(a.Value) && math.IsNaN(b.Value) || math.Abs(a.Value-b.Value) <= 1e-9*math.Abs(a.Value)
	return same && a.Seconds == b.Seconds
}

// TestSecondStartGoesOnCounting: a workload that is started again continues its counters, and nothing happens in
// between.
func TestSecondStartGoesOnCounting(t *testing.T) {
	s := openStore(t)
	for _, at := range []int{0, 1, 20, 21} {
		iv := anInterval(0, at)
		iv.Instance = 1 + at/20
		iv.Directions[interval.Read].Operations = 100
		if err := s.AppendInterval(iv); err != nil {
			t.Fatal(err)
		}
	}
	for at, want := range map[int64]float64{0: 0, 1: 100, 2: 200, 20: 200, 21: 300, 22: 400} {
		if got := one(t, s, `bragg_operations_total`, at*1e9); got != want {
			t.Errorf("at %d s: %v operations, want %v", at, got, want)
		}
	}
	if got := one(t, s, `irate(bragg_operations_total[2s])`, 21e9); got != 100 {
		t.Errorf("the first second of the second start: %v operations/s", got)
	}
}

// Gauges of a load that has ended are gone, although values are valid for 30 seconds; what is known at the end only can be read after it, in
// every start of the load.
func TestGaugesEndWithTheirLoad(t *testing.T) {
	m := testManifest
	m.Engines = map[string]interval.Engine{"OLTP": {Gauges: []interval.Gauge{{Name: "depth"}, {Name: "at the end"}}}}
	s, err := metric.Open(filepath.Join(t.TempDir(), metric.Dir), m)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, at := range []int{0, 1, 40} { // the second start has one interval only
		iv := anInterval(0, at)
		iv.InFlight, iv.Gauges = 3, interval.GaugeValues{5, math.NaN()}
		if iv.Final = at > 0; iv.Final {
			iv.Gauges[1] = 7
		}
		if err := s.AppendInterval(iv); err != nil {
			t.Fatal(err)
		}
	}
	for expr, want := range map[string]map[int64]int{
		`bragg_load_gauge{gauge="depth"}`:           {1: 1, 2: 1, 3: 0, 39: 0, 42: 1},
		`bragg_in_flight_operations`:                {1: 1, 2: 1, 3: 0, 41: 1, 42: 0},
		`bragg_load_gauge{gauge="at the end"} > 0`:  {1: 0, 2: 1, 3: 1, 31: 1, 39: 0, 41: 1, 42: 1},
		`rate(bragg_operations_total[10s])`:         {3: 1},
		`max_over_time(bragg_load_gauge[10s]) == 7`: {3: 1, 42: 1},
	} {
		for at, series := range want {
			if got := instant(t, s, expr, at*1e9); len(got) != series {
				t.Errorf("%s at %d s: %d series, want %d", expr, at, len(got), series)
			}
		}
	}
}

// TestLateIntervalsAreTaken: agents that were cut off deliver up to 15 minutes later.
func TestLateIntervalsAreTaken(t *testing.T) {
	s := openStore(t)
	for sec := range 900 {
		if err := s.AppendInterval(anInterval(0, sec)); err != nil {
			t.Fatal(err)
		}
	}
	for sec := range 900 {
		if err := s.AppendInterval(anInterval(1, sec)); err != nil {
			t.Fatal(err)
		}
	}
	if got := one(t, s, `count(bragg_operations_total)`, 10e9); got != 2 {
		t.Errorf("%v series at 10 s", got)
	}
	if got, want := one(t, s, `irate(bragg_operations_total{vm="g-0002"}[2s])`, 500e9), float64(operations(1, 499)); got != want {
		t.Errorf("at 500 s: %v, want %v", got, want)
	}
}

// TestLongIntervalHasOneRate: within an interval that was reported late, the rate is its own and not that of the interval before.
func TestLongIntervalHasOneRate(t *testing.T) {
	s := openStore(t)
	fill(t, s, 10)
	long := anInterval(0, 10)
	long.LengthNanos = 3e9
	if err := s.AppendInterval(long); err != nil {
		t.Fatal(err)
	}
	for at := int64(11); at <= 13; at++ {
		got := one(t, s, `irate(bragg_operations_total{vm="g-0001"}[2s])`, at*1e9)
		if want := float64(operations(0, 10)) / 3; math.Abs(got-want) > 1e-6 {
			t.Errorf("at %d s: %v operations/s, want %v", at, got, want)
		}
	}
}

func TestShortIntervalsAndErrors(t *testing.T) {
	s := openStore(t)
	for i := range 5 { // all within one millisecond, as a last interval may be
		iv := anInterval(0, 0)
		iv.Sequence, iv.StartNanos, iv.LengthNanos = int64(i), int64(i)*1000, 1000
		iv.Directions[interval.Write].Errors = map[string]uint64{"EIO": 1}
		iv.Due, iv.NotIssued, iv.Backlog = 3, 1, uint64(i)
		if err := s.AppendInterval(iv); err != nil {
			t.Fatal(err)
		}
	}
	for expr, want := range map[string]float64{
		`sum(bragg_errors_total{class="EIO",direction="write"})`: 5, `bragg_operations_due_total`: 15,
		`bragg_operations_not_issued_total`: 5, `bragg_backlog_operations`: 4, `bragg_operations_total{direction="write"}`: 0,
	} {
		if got := one(t, s, expr, 1e9); got != want {
			t.Errorf("%s is %v, want %v", expr, got, want)
		}
	}
}

func TestQueriesAreBounded(t *testing.T) {
	s := openStore(t)
	fill(t, s, 5)
	ctx := context.Background()
	for name, w := range map[string]metric.Window{
		"too many steps": {ToNanos: 1e15, Step: time.Millisecond}, "backwards": {FromNanos: 2, ToNanos: 1, Step: time.Second},
	} {
		if _, err := s.Range(ctx, "up", w); err == nil {
			t.Errorf("%s: answered", name)
		}
	}
	for _, expr := range []string{"", "sum(", "bragg_service_time_seconds", strings.Repeat("(", 20_000)} {
		if _, err := s.Range(ctx, expr, metric.Window{ToNanos: 5e9, Step: time.Second}); err == nil {
			t.Errorf("%.20q: answered", expr)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Range(cancelled, "sum(bragg_operations_total)", metric.Window{ToNanos: 5e9, Step: time.Second}); err == nil {
		t.Error("a cancelled query was answered")
	}
	if err := s.Check("sum(rate(x[5m]))"); err != nil {
		t.Error(err)
	}
	if err := s.Check("sum(rate(x))"); err == nil {
		t.Error("rate of an instant was taken")
	}
	if _, err := s.Instant(ctx, "bragg_operations_total[5s]", 5e9); err == nil {
		t.Error("a matrix has no value at one moment")
	}
	if got := one(t, s, "1 + 1", 5e9); got != 2 {
		t.Errorf("1 + 1 = %v", got)
	}
}

// TestQueriesWriteNothing: a finished store may be in a folder of others. Several queries at once get its values, and leave it as it is.
func TestQueriesWriteNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), metric.Dir)
	s, err := metric.Open(dir, testManifest)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, 10)
	want := one(t, s, `sum(bragg_operations_total)`, 10e9)
	if err := errors.Join(s.Persist(), s.Close()); err != nil {
		t.Fatal(err)
	}
	before := filesOf(t, dir)
	for range 2 {
		again, err := metric.OpenBlocks(dir, testManifest)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if got := one(t, again, `sum(bragg_operations_total)`, 10e9); got != want {
			t.Errorf("%v after reopening, %v before", got, want)
		}
		if after := filesOf(t, dir); after != before {
			t.Errorf("changed:\n%sinto\n%s", before, after)
		}
	}
	if s, err := metric.OpenBlocks(t.TempDir(), testManifest); err == nil {
		_ = s.Close()
		t.Error("a folder without blocks was opened")
	}
}

// filesOf lists the files below a folder, with their sizes and times.
func filesOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintf(&b, "%s %v %d %v\n", path, info.Mode(), info.Size(), info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), metric.Dir)
	s, err := metric.Open(dir, testManifest)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, 10)
	want := one(t, s, `sum(bragg_operations_total)`, 10e9)
	if err := errors.Join(s.Persist(), s.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := metric.Open(dir, testManifest)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := one(t, again, `sum(bragg_operations_total)`, 10e9); got != want {
		t.Errorf("%v after reopening, %v before", got, want)
	}
	if _, err := metric.Open(dir, testManifest); err == nil {
		t.Error("a store was opened twice at the same time")
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := metric.Open("/proc/self/nowhere", testManifest); err == nil {
		t.Error("opened in a place that cannot be written")
	}
}

// TestNativeHistogramQuantiles compares PromQL's quantiles with those of the record: within a bucket of 4.4 %.
func TestNativeHistogramQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		scale := math.Pow(10, rapid.Float64Range(2, 10).Draw(t, "scale"))
		h := &stat.Histogram{}
		for range 2000 {
			h.Record(uint64(scale * math.Exp(0.4*random.NormFloat64())))
		}
		got := metric.Quantile(h, 0.9)
		if want := h.Quantile(0.9) / 1e9; math.Abs(got-want) > 0.05*want {
			t.Fatalf("p90 is %v s as a native histogram and %v s in the record", got, want)
		}
	})
}
