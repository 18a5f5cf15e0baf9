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

// Bounds are those of a parameter in the unit in which PostgreSQL counts it; high is 0 without one.
func Bounds(name string) (low, high float64, known bool) {
	p, known := parameters[name]
	per := map[string]float64{"8kB": 8 << 10, "kB": 1 << 10, "MB": 1 << 20, "": 1}[p.unit] + micros[p.unit]
	return p.low / per, p.high / per, known
}
