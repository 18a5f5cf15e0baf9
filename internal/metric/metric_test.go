package metric_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

var testManifest = result.Manifest{
	Run: "run-1", Created: time.Date(2026, 3, 4, 5, 6, 7, 123e6, time.UTC),
	Scenario: result.ScenarioInfo{Name: "four_corners"},
}

func openStore(t *testing.T) *metric.Store {
	t.Helper()
	s, err := metric.Open(filepath.Join(t.TempDir(), metric.Dir), testManifest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// operations of the second that begins at s, on VM v.
func operations(v, s int) uint64 { return uint64(100*(v+1) + 7*s%31) }

func anInterval(v, s int) *interval.Interval {
	iv := &interval.Interval{
		Workload: "OLTP", Group: "g", VM: []string{"g-0001", "g-0002"}[v], Instance: 1,
		Sequence: int64(s), StartNanos: int64(s) * 1e9, LengthNanos: 1e9,
	}
	h := &stat.Histogram{}
	h.RecordN(uint64(1_000_000*(v+1)), operations(v, s))
	iv.Directions[interval.Read] = interval.Traffic{
		Operations: operations(v, s), Bytes: 4096 * operations(v, s), Service: h,
	}
	return iv
}

func fill(t *testing.T, s *metric.Store, seconds int) {
	t.Helper()
	for sec := range seconds {
		for v := range 2 {
			if err := s.AppendInterval(anInterval(v, sec)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestCounterRatesEqualIntervals(t *testing.T) {
	s := openStore(t)
	fill(t, s, 60)
	got, err := s.Range(context.Background(), `sum(irate(bragg_operations_total[2s]))`,
		metric.Window{FromNanos: 1e9, ToNanos: 60e9, Step: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || len(got[0].Points) != 60 {
		t.Fatalf("got %d series: %+v", len(got), got)
	}
	for i, p := range got[0].Points {
		// The rate at second i+1 is that of the interval which ends there.
		want := float64(operations(0, i) + operations(1, i))
		if math.Abs(p.Value-want) > 1e-6 || p.Seconds != float64(i+1) {
			t.Fatalf("at %v s: %v operations/s, want %v at %d s", p.Seconds, p.Value, want, i+1)
		}
	}
}

func TestTotalsEqualIntervals(t *testing.T) {
	s := openStore(t)
	fill(t, s, 30)
	var want float64
	for sec := range 30 {
		want += float64(operations(0, sec) + operations(1, sec))
	}
	for _, c := range []struct {
		expr string
		want float64
	}{
		{`sum(bragg_operations_total{run="run-1",vm_group="g"})`, want},
		{`sum(bragg_bytes_total)`, 4096 * want},
		{`sum(histogram_count(bragg_service_time_seconds))`, want},
		{`count(bragg_response_time_seconds) or vector(0)`, 0},
		{`count(bragg_operations_total{direction="write"}) or vector(0)`, 0},
	} {
		got, err := s.Instant(context.Background(), c.expr, 30e9)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %v %v", c.expr, got, err)
		}
		if got[0].Points[0].Value != c.want {
			t.Errorf("%s = %v, want %v", c.expr, got[0].Points[0].Value, c.want)
		}
	}
	got, err := s.Instant(context.Background(), `histogram_quantile(0.5, bragg_service_time_seconds{vm="g-0001"})`, 30e9)
	if err != nil || len(got) != 1 || math.Abs(got[0].Points[0].Value-1e-3) > 0.05e-3 {
		t.Errorf("median of operations of 1 ms: %v %v", got, err)
	}
}

func TestExpand(t *testing.T) {
	got, err := metric.Expand(`sum(irate(x{ __curie_filter_scenario__, __curie_filter_vm_group__ }[30s]))`, "r", `a"b`)
	if want := `sum(irate(x{ run="r", vm_group="a\"b" }[30s]))`; got != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if _, err := metric.Expand(`x{__curie_filter_cluster__}`, "r", "g"); err == nil {
		t.Error("an unknown macro was taken")
	}
}
