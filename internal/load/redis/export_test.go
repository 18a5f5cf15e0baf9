package redis

import "github.com/braggdev/bragg/internal/stat"

// ParseRound reads what redis-benchmark printed.
func ParseRound(text string) (uint64, *stat.Histogram, error) { return parseRound(text) }

// CountersAnswer reads an answer of the server.
func CountersAnswer(line string) error {
	_, err := parseCounters(line)
	return err
}
