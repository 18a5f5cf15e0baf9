package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// metricsBytesMax bounds one exposition. An agent's own has a few kilobytes.
const metricsBytesMax = 4 << 20

// metricsType is Prometheus' text format.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// expose answers with the agent's counters, on a port of its own or on the connection of the controller: an agent behind a
// firewall has no other port.
func (s *Server) expose(w http.ResponseWriter, _ *http.Request) {
	s.at("agent.metrics")
	w.Header().Set("Content-Type", metricsType)
	_, _ = io.WriteString(w, s.exposition(time.Now()))
}

// Metrics returns the agent's own counters in Prometheus' text format, over the connection that the client has. It makes none: while
// the agent is cut off there are no counters.
func (c *Client) Metrics(ctx context.Context) (text []byte, err error) {
	link, err := c.present()
	if err != nil {
		return nil, fmt.Errorf("scrape the agent: %w", err)
	}
	response, err := c.sendOver(ctx, link, request{http.MethodGet, "/metrics", nil})
	if err != nil {
		return nil, fmt.Errorf("scrape the agent: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if text, err = io.ReadAll(io.LimitReader(response.Body, metricsBytesMax+1)); err != nil {
		return nil, fmt.Errorf("scrape the agent: %w", c.lostError(ctx, err))
	}
	if len(text) > metricsBytesMax {
		return nil, fmt.Errorf("scrape the agent: more than %d bytes", metricsBytesMax)
	}
	return text, nil
}
