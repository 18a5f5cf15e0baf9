package pgbench_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load/pgbench"
)

// thread does what a thread of pgbench does with a rate: each client that is free draws the next intended start, waits for it, and starts no
// transaction after the end. It returns the log, and how many transactions were due before the end and not begun.
func thread(random *rand.Rand, clients int, rate float64, service func(at float64) float64, end float64) (log []string, never int) {
	free := make([]float64, clients)
	type line struct {
		at   float64
		text string
	}
	var lines []line
	due := 0.0
	for {
		client := 0 // the first one that is free
		for i := range free {
			if free[i] < free[client] {
				client = i
			}
		}
		if free[client] > end {
			break
		}
		due += random.ExpFloat64() / rate
		start := max(due, free[client])
		if due > end || start > end {
			break
		}
		free[client] = start + service(start)
		done, latency := free[client], free[client]-due
		lines = append(lines, line{done, fmt.Sprintf("%d 1 %d 0 %d %d %d", client, int64(latency*1e6), int64(done), int64((done-math.Floor(done))*1e6), int64((start-due)*1e6))})
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	for _, l := range lines {
		log = append(log, l.text)
	}
	if slices.Min(free) <= end {
		return log, 0 // a client is free: it waits for the first intended start after the end
	}
	for due += random.ExpFloat64() / rate; due <= end; due += random.ExpFloat64() / rate {
		never++
	}
	return log, never
}

// What was due and never begun is estimated without bias: in an overload, in a stall at the end, and where a thread keeps up.
func TestNeverBegun(t *testing.T) {
	const rate, seconds, runs = 50.0, 10.0, 400
	for name, service := range map[string]func(at float64) float64{
		"keeps up": func(float64) float64 { return 0.005 },
		"busy":     func(float64) float64 { return 0.06 },
		"overload": func(float64) float64 { return 0.2 },
		"stall":    func(at float64) float64 { return map[bool]float64{true: 5, false: 0.005}[at > 7] },
	} {
		random := rand.New(rand.NewPCG(1, 2))
		sum, estimated, most := 0.0, 0.0, 0.0
		for range runs {
			log, never := thread(random, 4, rate, service, seconds)
			got, err := pgbench.Never(log, 4, rate, int64(seconds*1e9))
			if err != nil {
				t.Fatal(err)
			}
			sum, estimated, most = sum+float64(never), estimated+got, max(most, got)
		}
		if deviation := math.Sqrt(sum); math.Abs(sum-estimated) > 4*deviation+1 {
			t.Errorf("%s: %.0f transactions were never begun in %d runs, and %.0f are estimated", name, sum, runs, estimated)
		}
		if name == "keeps up" && most > 1 {
			t.Errorf("a thread that keeps up has %v waiting", most)
		}
	}
}

// Transactions that fail have no intended start in the log, and are not counted as waiting.
func TestNeverBegunAfterFailures(t *testing.T) {
	log := []string{"0 1 1000000 0 2 0 0", "0 2 serialization 0 3 0 0", "0 3 serialization 0 11 0 0"}
	if got, err := pgbench.Never(log, 1, 5, 10e9); err != nil || got != 5*9-2 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := pgbench.Never(log, 2, 5, 10e9); err != nil || got != 0 {
		t.Errorf("with a client that had no transaction: %v, %v", got, err)
	}
	if got := pgbench.ClientsOf(10, 4); !slices.Equal(got, []int{3, 3, 2, 2}) {
		t.Errorf("clients of 4 threads: %v", got)
	}
}

// A load that cannot keep its rate counts what was due: done, or waiting at its end. One that can has nothing waiting, but for the moment of the end.
func TestBacklogAtEnd(t *testing.T) {
	needPostgreSQL(t)
	t.Parallel()
	const rate, seconds = 200, 3
	w := prefilled(t, map[string]string{"scale": "1", "clients": "4", "threads": "2", "rate": fmt.Sprint(rate)})
	w.Runtime = seconds * time.Second
	w.ConfigName, w.Config = "slow.sql", "SELECT pg_sleep(0.08);\n"
	sum, said := run(t, w)
	done := sum.Totals().Operations
	if due := float64(done + sum.NotIssued); math.Abs(due-rate*seconds) > 0.35*rate*seconds || sum.NotIssued < rate || sum.Due != done+sum.NotIssued {
		t.Errorf("%d done and %d waiting of about %d that were due (%d recorded)", done, sum.NotIssued, rate*seconds, sum.Due)
	}
	if !strings.Contains(said, "were due at the end and had not begun") {
		t.Errorf("the outputs do not say so:\n%s", said)
	}
	w.Options["rate"], w.Config = "30", "SELECT 1;\n"
	if sum, _ = run(t, w); sum.NotIssued > 5 {
		t.Errorf("%d of %d transactions are said to wait at the end of a load that keeps its rate", sum.NotIssued, sum.Due)
	}
}
