package metric

import (
	"net/http"

	"github.com/prometheus/prometheus/promql"

	"github.com/prometheus/prometheus/promql/parser/posrange"

	"github.com/braggdev/bragg/internal/stat"
)

// Quantile is what PromQL says of h after it became a native histogram.
func Quantile(h *stat.Histogram, q float64) float64 {
	var e exponential
	e.add(h)
	native := e.histogram()
	if err := native.Validate(); err != nil {
		panic(err)
	}
	v, _ := promql.HistogramQuantile(q, native.ToFloat(nil), "", posrange.PositionRange{})
	return v
}

// RemoteClient is what requests of remote write are made with.
func RemoteClient(o RemoteOptions) *http.Client { return o.client() }

// Upkeep lets s do now what it does once a minute.
func Upkeep(s *Store) {
	select {
	case s.disk.due <- struct{}{}:
	default:
	}
}

// LimitQueue bounds how many points wait.
func (r *Remote) LimitQueue(points int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = points
}

// Waiting is how many points are held in memory.
func (r *Remote) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.waiting, len(r.queue))
}
