package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/push"
	"github.com/prometheus/common/expfmt"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/wait"
)

// Bounds on what clients can use, and on pushes.
const (
	headerTimeout  = 5 * time.Second
	answerTimeout  = time.Minute
	closeTimeout   = 2 * time.Second
	scrapesAtOnce  = 4
	headerBytesMax = 16 << 10
	pushTimeout    = 15 * time.Second
	reasonRunesMax = 300
)

// Serve answers scrapes of /metrics on a listener until ctx ends, and closes it. Each scrape reads the sources first.
func (e *Exporter) Serve(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	metrics := promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesAtOnce})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		_ = e.Read(r.Context()) // bragg_source_up says so
		metrics.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "bragg exporter: see /metrics") // it does not matter if the client is gone
	})
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: answerTimeout, MaxHeaderBytes: headerBytesMax,
	}
	stopped := context.AfterFunc(ctx, func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = server.Shutdown(within)
	})
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// Write reads the sources and prints one exposition. A source whose rates need two readings is read again after its interval.
func (e *Exporter) Write(ctx context.Context, w io.Writer) error {
	failed := e.Twice(ctx)
	families, err := e.registry.Gather()
	if err != nil {
		return fmt.Errorf("gather metrics: %w", err)
	}
	out := expfmt.NewEncoder(w, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := out.Encode(f); err != nil {
			return fmt.Errorf("write metrics: %w", err)
		}
	}
	return failed
}

// Twice reads the sources, and once more after the longest interval of those that have counters.
func (e *Exporter) Twice(ctx context.Context) error {
	err := e.Read(ctx)
	pause := time.Duration(0)
	for _, s := range e.sources {
		s.mu.Lock()
		if s.err == nil && hasCounters(s.samples) {
			pause = max(pause, s.Interval)
		}
		s.mu.Unlock()
	}
	if pause == 0 {
		return err
	}
	if err := wait.For(ctx, pause); err != nil {
		return err
	}
	return e.Read(ctx)
}

func hasCounters(samples []collect.Sample) bool {
	return slices.ContainsFunc(samples, func(s collect.Sample) bool {
		m, ok := collect.Describe(s.Name)
		return ok && m.Counter
	})
}

// Gateway is a Pushgateway.
type Gateway struct {
	URL           string
	Job           string
	Grouping      map[string]string
	Authorization string // value of that header; never printed
	// Delete removes the group at the end.
	Delete bool
}

// Validate returns why an address cannot be used; the text does not contain it, because it may hold a password.
func (g Gateway) Validate() error {
	u, err := url.Parse(g.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("want the address of a Pushgateway, such as http://pushgateway:9091")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the address of a Pushgateway holds a user, a query or a fragment, which every process of this machine could read")
	}
	return nil
}

// Push reads the sources and replaces the group of the gateway every interval, until ctx ends; once if every is 0. A push that fails is
// reported by the exporter's Report and repeated with the next one.
func (e *Exporter) Push(ctx context.Context, g Gateway, every time.Duration) error {
	client := &http.Client{Timeout: pushTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	p := push.New(g.URL, g.Job).Gatherer(e.registry).Client(client).Header(http.Header{})
	if g.Authorization != "" {
		p.Header(http.Header{"Authorization": {g.Authorization}})
	}
	for name, value := range g.Grouping {
		p.Grouping(name, value)
	}
	if every == 0 {
		failed := e.Twice(ctx)
		if err := p.PushContext(ctx); err != nil {
			return pushed(err)
		}
		return failed
	}
	wait.NowAndEvery(ctx, every, func() {
		_ = e.Read(ctx) // bragg_source_up says so
		if err := p.PushContext(ctx); err != nil && ctx.Err() == nil && e.Report != nil {
			e.Report(g.Job, pushed(err))
		}
	})
	if g.Delete {
		if err := p.Delete(); err != nil { // its client has a timeout
			return pushed(err)
		}
	}
	return nil
}

// pushed is an error of the gateway, whose answer may be long.
func pushed(err error) error {
	return fmt.Errorf("push metrics: %s", textio.Clip(textio.Line(err.Error()), reasonRunesMax))
}
