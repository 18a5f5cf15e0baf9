package postgres

import "time"

// CountersToGauges returns the gauges between two answers of a server, and since a first one.
func CountersToGauges(first, before, now string, passed time.Duration) ([]float64, error) {
	var counters [3][counterCount]float64
	for i, line := range []string{first, before, now} {
		var err error
		if counters[i], err = parseCounters(line); err != nil {
			return nil, err
		}
	}
	return gaugesOf(counters[0], counters[1], counters[2], passed), nil
}
