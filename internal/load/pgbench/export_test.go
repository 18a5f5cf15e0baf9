package pgbench

import (
	"github.com/braggdev/bragg/internal/load/program"
)

// Exports for tests.
var (
	ShellCommand = shellCommand
	ScaleFor     = scaleFor
	DataBytes    = dataBytes
)

// Parsed is one line of a transaction log: script, end, latency and lag in nanoseconds, and "ok", "skipped" or the failure.
type Parsed struct {
	Script            int
	End, Latency, Lag int64
	Outcome           string
}

// ParseLine reads one line of a transaction log.
func ParseLine(line string, rated bool) (Parsed, error) {
	_, t, err := parseTransaction([]byte(line), rated)
	p := Parsed{t.Kind, t.End, t.Latency, t.Lag, t.Failed}
	switch {
	case t.Skipped:
		p.Outcome = "skipped"
	case t.Failed == "":
		p.Outcome = "ok"
	}
	return p, err
}

// ParseSummary reads pgbench's output and returns transactions processed, skipped and failed.
func ParseSummary(text string) ([3]uint64, error) {
	s, err := parseSummary(text)
	return [3]uint64{s.processed, s.skipped, s.failed}, err
}

// Compare holds totals against a summary, as at the end of a load.
func Compare(processed, skipped, failed uint64, text string) error {
	return compare(&program.Recorder{Done: processed, Skipped: skipped, Failed: failed}, text)
}

// Never returns what one thread of a log tells of transactions that were due and not begun until a time in nanoseconds.
func Never(lines []string, clients int, rate float64, end int64) (float64, error) {
	t := threads(clients, 1)[0]
	for _, line := range lines {
		client, o, err := parseTransaction([]byte(line), true)
		if err != nil {
			return 0, err
		}
		t.add(client, o)
	}
	return t.neverBegun(end, rate), nil
}

// ClientsOf returns the clients of each thread.
func ClientsOf(clients, count int) (list []int) {
	for _, t := range threads(clients, count) {
		list = append(list, t.clients)
	}
	return list
}
