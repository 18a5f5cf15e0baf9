// Package exporter serves the progress of jobs as Prometheus metrics, while they run.
//
//	iojob.Live ──Collect──▶ registry ──/metrics──▶ Prometheus
//
// Names and meanings are those of package metric (docs/formats/metrics.md), which stores them; this package only answers
// scrapes. Values are as of the last period that a clone delivered, half a second.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/interval"
)

// Server answers scrapes until it is closed.
type Server struct {
	listener net.Listener
	http     *http.Server
	done     chan error

	mu  sync.Mutex
	now func() []iojob.Live // nil before jobs begin
}

// Bounds on the resources that a client can use.
const (
	headerTimeout  = 5 * time.Second
	answerTimeout  = 30 * time.Second
	closeTimeout   = 2 * time.Second
	scrapesAtOnce  = 4
	headerBytesMax = 16 << 10
)

// Listen starts a server at HOST:PORT; port 0 selects a free one.
func Listen(address string) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: listener, done: make(chan error, 1)}
	registry := prometheus.NewRegistry()
	if err := errors.Join(registry.Register(collector{s}), registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesAtOnce}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "bragg io: see /metrics") // it does not matter if the client is gone
	})
	s.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: answerTimeout, MaxHeaderBytes: headerBytesMax,
	}
	go func() { s.done <- s.http.Serve(listener) }()
	return s, nil
}

// Address is the address on which the server listens, with the selected port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Watch sets the function that returns the progress of jobs; see iojob.Options.Live.
func (s *Server) Watch(now func() []iojob.Live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

func (s *Server) live() []iojob.Live {
	s.mu.Lock()
	now := s.now
	s.mu.Unlock()
	if now == nil {
		return nil
	}
	return now()
}

// Close ends the server; a scrape in progress may finish.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// Names of metrics, the same as in package metric.
var (
	operations = metricOf("operations_total", "Operations that completed without an error.", "direction")
	bytes      = metricOf("bytes_total", "Bytes of operations that completed without an error.", "direction")
	failed     = metricOf("errors_total", "Operations that failed, by class.", "direction", "class")
	service    = metricOf("service_time_seconds", "Time from submission to completion.", "direction")
	response   = metricOf("response_time_seconds", "Time from the intended start to completion, of jobs with a rate.", "direction")
	due        = metricOf("operations_due_total", "Operations whose intended start has passed.")
	notIssued  = metricOf("operations_not_issued_total", "Operations that were due and never issued.")
	backlog    = metricOf("backlog_operations", "Operations that are due and wait.")
	inFlight   = metricOf("in_flight_operations", "Operations submitted and not completed.")
	cpu        = metricOf("generator_cpu_seconds_total", "CPU time of the generator.")
	stalled    = metricOf("generator_stalled_seconds_total", "Time in which the generator itself did not run.")
	deviceOps  = metricOf("device_operations_total", "Operations that completed without an error, by file or device.", "device", "direction")
	deviceB    = metricOf("device_bytes_total", "Bytes of operations that completed without an error, by file or device.", "device", "direction")
	deviceTime = metricOf("device_service_time_seconds_total", "Sum of service times, by file or device.", "device", "direction")
)

func metricOf(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("bragg_"+name, help, append([]string{"workload", "clone"}, labels...), nil)
}

// collector makes metrics from the progress of jobs at the time of a scrape.
type collector struct{ server *Server }

// Describe implements prometheus.Collector.
func (collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{operations, bytes, failed, service, response, due, notIssued, backlog, inFlight, cpu, stalled, deviceOps, deviceB, deviceTime} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, l := range c.server.live() {
		w := writer{out: out, clone: []string{l.Job, strconv.Itoa(l.Clone)}}
		for d := range l.Traffic {
			w.direction(interval.Direction(d).String(), &l.Traffic[d])
		}
		if l.OpenLoop {
			w.counter(due, float64(l.Due))
			w.counter(notIssued, float64(l.NotIssued))
			w.gauge(backlog, float64(l.Backlog))
		}
		w.gauge(inFlight, float64(l.InFlight))
		w.counter(cpu, float64(l.CPUNanos)/1e9)
		w.counter(stalled, float64(l.StalledNanos)/1e9)
		for name, traffic := range l.Devices {
			for d := range traffic {
				if n := &traffic[d]; n.Operations > 0 {
					direction := interval.Direction(d).String()
					w.counter(deviceOps, float64(n.Operations), name, direction)
					w.counter(deviceB, float64(n.Bytes), name, direction)
					w.counter(deviceTime, float64(n.ServiceNanos)/1e9, name, direction)
				}
			}
		}
	}
}

// writer makes the metrics of one clone.
type writer struct {
	out   chan<- prometheus.Metric
	clone []string
}

// direction makes no series of a direction that never occurred.
func (w *writer) direction(name string, t *interval.Traffic) {
	if t.Operations == 0 && len(t.Errors) == 0 {
		return
	}
	w.counter(operations, float64(t.Operations), name)
	w.counter(bytes, float64(t.Bytes), name)
	for class, n := range t.Errors {
		w.counter(failed, float64(n), name, class)
	}
	if t.Service != nil {
		w.out <- newHistogram(service, t.Service, w.values(name))
	}
	if t.Response != nil {
		w.out <- newHistogram(response, t.Response, w.values(name))
	}
}

func (w *writer) values(labels ...string) []string {
	return append(append([]string(nil), w.clone...), labels...)
}

func (w *writer) counter(d *prometheus.Desc, v float64, labels ...string) {
	w.out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, w.values(labels...)...)
}

func (w *writer) gauge(d *prometheus.Desc, v float64, labels ...string) {
	w.out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, w.values(labels...)...)
}
