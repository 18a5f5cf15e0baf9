package mariadb

import (
	"os"
	"time"

	"github.com/braggdev/bragg/internal/load/program"
)

// CountersToGauges returns the gauges between two answers of a server.
func CountersToGauges(before, now string, passed time.Duration) ([]float64, error) {
	a, err := parseCounters(before)
	if err != nil {
		return nil, err
	}
	b, err := parseCounters(now)
	return gaugesOf(a, b, passed), err
}

// Secrets makes the files of an endpoint.
func Secrets(e program.Endpoint, r *program.Room) ([]*os.File, error) { return secrets("lab", e, r) }
