package metric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/wait"
)

const (
	scrapeBytesMax    = 16 << 20
	scrapeSamplesMax  = 50_000
	scrapeTimeoutMax  = 10 * time.Second
	scrapesAtOnce     = 32
	scrapeIdlePerHost = 1
	// AcceptText is the header Accept of a scrape.
	AcceptText = "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.8"
)

// Exporter is one address where a Prometheus exporter answers.
type Exporter struct {
	Address string // host:port; may be empty if Fetch is set
	// Labels are set on every sample; a label of the exporter with the same name becomes exported_<name>.
	Labels map[string]string
	// Fetch, if set, gets the text over an existing connection. With an Address it is the fallback if the address does not
	// answer.
	Fetch func(ctx context.Context) ([]byte, error)
	// Whole: keep every metric, regardless of Keep. Bragg's agents have few metrics, and all are wanted.
	Whole bool
}

// VMExporter describes an exporter on a VM with the labels that all series of a VM have. X-Ray's label instance is the name of
// the VM, without the port.
func VMExporter(address, group, vm, node string) Exporter {
	return Exporter{Address: address,
		Labels: map[string]string{"vm_group": group, "vm": vm, "instance": vm, "node": node, "job": "bragg"}}
}

// NodeExporter describes an exporter on a node of the target.
func NodeExporter(address, id, name string) Exporter {
	return Exporter{Address: address, Labels: map[string]string{"instance": name, "node": id, "job": "bragg-node"}}
}

// Scraper scrapes exporters at a steady interval. Set and Run may be called from different goroutines.
type Scraper struct {
	Interval time.Duration // default: 5 s
	// Now returns the current time on the run's axis. A sample has the time at which its scrape began.
	Now func() int64
	// Keep reports whether a metric is wanted; nil keeps all. up and scrape_duration_seconds are always added.
	Keep func(name string) bool
	// Sink takes the samples of one scrape. It is called from several goroutines, and owns the samples.
	Sink func([]result.Sample)
	// List names the exporters of each round instead of Set; nil: Set does. It is called once in a round, however often they change.
	List func() []Exporter

	mu        sync.Mutex
	exporters []Exporter
}

// Set replaces the list of exporters; the next round uses it. VMs come and go in a run.
func (s *Scraper) Set(exporters []Exporter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exporters = slices.Clone(exporters)
}

// Run scrapes until ctx ends and returns after the last pending request.
func (s *Scraper) Run(ctx context.Context) {
	interval := s.Interval
	if interval <= 0 {
		interval = 5 * time.Second
	}
	client := newScrapeClient()
	defer client.CloseIdleConnections()
	wait.NowAndEvery(ctx, interval, func() { s.round(ctx, client, interval) })
}

// Once scrapes all exporters once.
func (s *Scraper) Once(ctx context.Context) {
	client := newScrapeClient()
	defer client.CloseIdleConnections()
	s.round(ctx, client, scrapeTimeoutMax)
}

func newScrapeClient() *http.Client {
	// No proxy and no redirects: an exporter is scraped only at its own address.
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: scrapeTimeoutMax}).DialContext,
			MaxIdleConnsPerHost: scrapeIdlePerHost, DisableCompression: false,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (s *Scraper) round(ctx context.Context, client *http.Client, interval time.Duration) {
	s.mu.Lock()
	exporters := s.exporters
	s.mu.Unlock()
	if s.List != nil {
		exporters = s.List()
	}
	ctx, cancel := context.WithTimeout(ctx, min(interval, scrapeTimeoutMax))
	defer cancel()
	var wait sync.WaitGroup
	slots := make(chan struct{}, scrapesAtOnce)
	for _, e := range exporters {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			s.scrape(ctx, client, e)
		})
	}
	wait.Wait()
}

// scrape scrapes one exporter. If it does not answer, only up = 0 is recorded: a gap.
func (s *Scraper) scrape(ctx context.Context, client *http.Client, e Exporter) {
	at, begin := s.Now(), time.Now()
	samples, err := s.fetch(ctx, client, e, at)
	if err != nil && ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return // the run ended in mid-scrape: that is not a failure of the exporter
	}
	up := 1.0
	if err != nil {
		up, samples = 0, nil
	}
	own := make(map[string]string, len(e.Labels)+1)
	for name, value := range e.Labels {
		own[name] = value
	}
	if _, port, err := net.SplitHostPort(e.Address); err == nil {
		own["port"] = port
	}
	samples = append(samples,
		result.Sample{AtNanos: at, Name: "up", Labels: own, Value: up},
		result.Sample{AtNanos: at, Name: "scrape_duration_seconds", Labels: own, Value: time.Since(begin).Seconds()})
	s.Sink(samples)
}

// fetch returns the samples of an exporter, from its address or otherwise by its Fetch.
func (s *Scraper) fetch(ctx context.Context, client *http.Client, e Exporter, at int64) ([]result.Sample, error) {
	keep, kind, fault := s.Keep, "text/plain; version=0.0.4", error(nil)
	var body []byte
	if e.Whole {
		keep = nil
	}
	if e.Address != "" {
		within, cancel := shareOf(ctx, e.Fetch != nil)
		body, kind, fault = get(within, client, e.Address)
		cancel()
	}
	if e.Fetch != nil && (e.Address == "" || fault != nil) {
		var err error
		if body, err = e.Fetch(ctx); err != nil {
			return nil, errors.Join(fault, err)
		}
		keep, kind, fault = nil, "text/plain; version=0.0.4", nil // only Bragg's agents are scraped like this
	}
	if fault != nil {
		return nil, fault
	}
	samples, err := ParseExposition(body, kind, keep)
	if err != nil {
		return nil, fmt.Errorf("scrape %q: %w", e.Address, err)
	}
	for i := range samples {
		samples[i].AtNanos = at
		samples[i].Labels = mergeLabels(samples[i].Labels, e.Labels)
	}
	return samples, nil
}

// shareOf is the time budget of an address: half of the remaining time if there is a fallback, because a firewall that drops
// packets uses up the whole budget.
func shareOf(ctx context.Context, half bool) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok && half {
		return context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	return context.WithCancel(ctx)
}

// get requests the text from an address and returns it with its content type.
func get(ctx context.Context, client *http.Client, address string) ([]byte, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, "", fmt.Errorf("scrape %q: %w", address, err)
	}
	request.Header.Set("Accept", AcceptText)
	request.Header.Set("User-Agent", "bragg")
	response, err := client.Do(request)
	if err != nil {
		return nil, "", fmt.Errorf("scrape %q: %w", address, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("scrape %q: %s", address, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, scrapeBytesMax+1))
	if err != nil {
		return nil, "", fmt.Errorf("scrape %q: %w", address, err)
	}
	if len(body) > scrapeBytesMax {
		return nil, "", fmt.Errorf("scrape %q: more than %d bytes", address, scrapeBytesMax)
	}
	return body, response.Header.Get("Content-Type"), nil
}

// ParseExposition reads the text format or OpenMetrics, at most 50,000 samples. AtNanos is the exporter's own timestamp in Unix time, 0
// without one: its clock is not the run's. A nil keep keeps every metric.
func ParseExposition(body []byte, contentType string, keep func(string) bool) ([]result.Sample, error) {
	if strings.Contains(contentType, "protobuf") {
		return nil, errors.New("the exporter answered in a format that was not asked for")
	}
	p, err := textparse.New(body, contentType, nil, textparse.ParserOptions{FallbackContentType: "text/plain"})
	if p == nil {
		return nil, err
	}
	var samples []result.Sample
	var ls labels.Labels
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil {
			return nil, err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, millis, value := p.Series()
		p.Labels(&ls)
		name := ls.Get(model.MetricNameLabel)
		if keep != nil && !keep(name) {
			continue
		}
		if len(samples) == scrapeSamplesMax {
			return nil, errors.New("more than " + strconv.Itoa(scrapeSamplesMax) + " samples")
		}
		own := make(map[string]string, ls.Len())
		ls.Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel {
				own[strings.Clone(l.Name)] = strings.Clone(l.Value)
			}
		})
		sample := result.Sample{Name: strings.Clone(name), Labels: own, Value: value}
		if millis != nil {
			sample.AtNanos = *millis * int64(time.Millisecond)
		}
		samples = append(samples, sample)
	}
}

func mergeLabels(own, set map[string]string) map[string]string {
	for name, value := range set {
		if have, taken := own[name]; taken {
			own["exported_"+name] = have
		}
		own[name] = value
	}
	return own
}
