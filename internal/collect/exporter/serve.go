package exporter

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/push"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/httpbound"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/wait"
)

// Bounds on what clients can use, and on pushes.
const (
	headerTimeout      = 5 * time.Second
	answerTimeout      = time.Minute
	answerReserve      = 500 * time.Millisecond // of the time of a scrape, to send the metrics
	closeTimeout       = 2 * time.Second
	scrapesAtOnce      = 4
	headerBytesMax     = 16 << 10
	pushTimeout        = 15 * time.Second
	pushAnswerBytesMax = 1 << 20
	reasonRunesMax     = 300
)

// Serve answers scrapes of /metrics on a listener until ctx ends, and closes it. Each scrape reads the sources first. webConfig is the path of a
// configuration file of Prometheus exporters, with TLS and users; "" is neither.
func (e *Exporter) Serve(ctx context.Context, listener net.Listener, webConfig string) error {
	server := &http.Server{
		Handler: e.handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: answerTimeout, MaxHeaderBytes: headerBytesMax,
		ErrorLog: log.New(io.Discard, "", 0), // of clients
	}
	stopped := context.AfterFunc(ctx, func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = server.Shutdown(within)
	})
	defer stopped()
	err := web.Serve(listener, server, &web.FlagConfig{WebConfigFile: &webConfig}, slog.New(slog.DiscardHandler))
	if !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(fmt.Errorf("serve metrics: %w", err), closed(listener))
	}
	return nil
}

// closed closes a listener that may be closed already.
func closed(l net.Listener) error {
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// CheckWebConfig returns why a configuration file for Serve cannot be used. The text contains no value of the file, which may be a password.
func CheckWebConfig(path string) error {
	if err := web.Validate(path); err != nil {
		return fmt.Errorf("web configuration: %s", textio.Line(quotedValue.ReplaceAllString(err.Error(), "a value")))
	}
	return nil
}

// quotedValue is a value in errors of the YAML parser.
var quotedValue = regexp.MustCompile("`[^`]*`")

// handler answers scrapes, as text or OpenMetrics.
func (e *Exporter) handler() http.Handler {
	mux := http.NewServeMux()
	free := make(chan struct{}, scrapesAtOnce)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		select {
		case free <- struct{}{}:
			defer func() { <-free }()
		default:
			http.Error(w, fmt.Sprintf("more than %d scrapes at once", scrapesAtOnce), http.StatusServiceUnavailable)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeFor(r))
		defer cancel()
		snapshot, _ := e.Read(ctx) // bragg_source_up says so
		promhttp.HandlerFor(snapshot.Gatherer(), promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "bragg exporter: see /metrics") // it does not matter if the client is gone
	})
	return mux
}

// timeFor is how long a scrape waits for sources: a little less than the scraping Prometheus does, which would otherwise drop the whole scrape.
func timeFor(r *http.Request) time.Duration {
	seconds, err := strconv.ParseFloat(r.Header.Get("X-Prometheus-Scrape-Timeout-Seconds"), 64)
	if err != nil || !(seconds > 0) || seconds > readTimeout.Seconds() {
		return readTimeout
	}
	timeout := time.Duration(seconds * float64(time.Second))
	return max(timeout-answerReserve, timeout/2)
}

// Write reads the sources and prints one exposition. A source whose rates need two readings is read again after its interval.
func (e *Exporter) Write(ctx context.Context, w io.Writer) error {
	snapshot, failed := e.Twice(ctx)
	families, err := snapshot.Gatherer().Gather()
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
func (e *Exporter) Twice(ctx context.Context) (Snapshot, error) {
	snapshot, err := e.Read(ctx)
	pause := time.Duration(0)
	for i, s := range snapshot {
		if s.err == nil && hasCounters(s.samples) {
			pause = max(pause, e.sources[i].Interval)
		}
	}
	if pause == 0 {
		return snapshot, err
	}
	if err := wait.For(ctx, pause); err != nil {
		return snapshot, err
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
	client := &http.Client{
		Timeout: pushTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &httpbound.Transport{Next: http.DefaultTransport, BytesMax: pushAnswerBytesMax},
	}
	defer client.CloseIdleConnections()
	var snapshot Snapshot
	latest := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return snapshot.Gatherer().Gather() })
	p := push.New(g.URL, g.Job).Gatherer(latest).Client(client).Header(http.Header{})
	if g.Authorization != "" {
		p.Header(http.Header{"Authorization": {g.Authorization}})
	}
	for name, value := range g.Grouping {
		p.Grouping(name, value)
	}
	if every == 0 {
		var failed error
		snapshot, failed = e.Twice(ctx)
		if err := p.PushContext(ctx); err != nil {
			return g.pushed(err)
		}
		return failed
	}
	wait.NowAndEvery(ctx, every, func() {
		snapshot, _ = e.Read(ctx) // bragg_source_up says so
		if err := p.PushContext(ctx); err != nil && ctx.Err() == nil && e.Report != nil {
			e.Report(g.Job, g.pushed(err))
		}
	})
	if g.Delete {
		if err := p.Delete(); err != nil { // its client has a timeout
			return g.pushed(err)
		}
	}
	return nil
}

// pushed is an error of the gateway, whose answer may be long and may repeat what it was sent.
func (g Gateway) pushed(err error) error {
	_, credential, ok := strings.Cut(g.Authorization, " ") // "Basic dXNlcjpwYXNz"
	if !ok {
		credential = g.Authorization
	}
	login := collect.Options{Secret: credential}
	if text, err := base64.StdEncoding.DecodeString(credential); err == nil && strings.Contains(string(text), ":") {
		login.User, login.Secret, _ = strings.Cut(string(text), ":")
	}
	text := collect.Hiding(login).Replace(err.Error())
	return fmt.Errorf("push metrics: %s", textio.Clip(textio.Line(text), reasonRunesMax))
}
