package postgres_test

import (
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load/postgres"
)

func TestGauges(t *testing.T) {
	got, err := postgres.CountersToGauges("1000000|3|10|0|0|100|100", "2000000|4|20|1|2|400|100", "5000000|5|1020|3|4|490|110", 2*time.Second)
	want := []float64{1.5, 4.096, 2, 3, 4, 90}
	if err != nil || len(got) != len(want) {
		t.Fatal(got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("gauges %v, want %v", got, want)
		}
	}
	// Counters that were reset by a restart, and nothing read at all.
	got, err = postgres.CountersToGauges("1|9|9|0|0|9|9", "1|9|9|0|0|9|9", "1|1|0|0|0|0|0", time.Second)
	if err != nil || got[2] != 1 || got[5] != 100 {
		t.Error(got, err)
	}
}

// An answer that was cut is refused, or was cut within its last number.
func TestAnswers(t *testing.T) {
	const line = "123456789|3|1000|0|2|100|200"
	for end := range line {
		if _, err := postgres.CountersToGauges(line, line, line[:end], time.Second); err == nil && end <= len("123456789|3|1000|0|2|100|") {
			t.Errorf("%q is read", line[:end])
		}
	}
	for _, bad := range []string{"-1|3|1000|0|2|100|200", "1|3|1000|0|2|100|200|1", "NaN|3|1000|0|2|100|200"} {
		if got, err := postgres.CountersToGauges(line, line, bad, time.Second); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}
