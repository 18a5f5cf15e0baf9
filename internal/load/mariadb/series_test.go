package mariadb_test

import (
	"slices"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load/mariadb"
)

const (
	before = "1000|100|5000000|10|1000000|50|60|7"
	now    = "2000|200|6000000|30|5000000|150|80|9"
)

func TestGauges(t *testing.T) {
	got, err := mariadb.CountersToGauges(before, now, 2*time.Second)
	if want := []float64{2, 50, 10, 10, 1, 6, 90}; err != nil || !slices.Equal(got, want) {
		t.Errorf("gauges %v, want %v: %v", got, want, err)
	}
	// A server that was restarted counts from 0, and one that read nothing found all it needed.
	got, err = mariadb.CountersToGauges(now, "0|0|0|4|0|0|0|0", time.Second)
	if want := []float64{0, 0, 0, 4, 0, 0, 100}; err != nil || !slices.Equal(got, want) {
		t.Errorf("gauges %v, want %v: %v", got, want, err)
	}
}

// An answer that was cut is refused, or was cut within its last number.
func TestAnswers(t *testing.T) {
	for end := range now {
		if _, err := mariadb.CountersToGauges(before, now[:end], time.Second); err == nil {
			t.Errorf("%q is read", now[:end])
		}
	}
	for _, bad := range []string{"-1|1|1|1|1|1|1|1", before + "|1", "NaN|1|1|1|1|1|1|1", "NULL", ""} {
		if got, err := mariadb.CountersToGauges(before, bad, time.Second); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(before)
	f.Add(now)
	f.Add("NULL")
	f.Fuzz(func(t *testing.T, line string) {
		got, err := mariadb.CountersToGauges(before, line, time.Second)
		if err == nil && (len(got) != len(mariadb.Gauges) || slices.ContainsFunc(got, func(v float64) bool { return !(v >= 0) })) {
			t.Errorf("%q: %v", line, got)
		}
	})
}
