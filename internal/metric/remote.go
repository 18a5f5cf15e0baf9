package metric

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/stat"
)

// Bounds of remote write. A store that is down costs only the memory of the queue.
const (
	remoteQueueMax   = 2_000_000 // points that wait, of about 50 bytes each: six seconds of ten thousand VMs
	remoteBatchMax   = 20_000    // points of one request
	remoteBatchEvery = time.Second
	remoteTriesMax   = 8
	remoteBackoffMin = 250 * time.Millisecond
	remoteBackoffMax = 10 * time.Second
	remoteTimeout    = 15 * time.Second // of one request
	remoteErrorMax   = 300              // bytes of a refusal that are kept
)

// remoteQuantiles are sent to a store that does not accept native histograms.
var remoteQuantiles = []struct {
	q    float64
	text string
}{{0.5, "0.5"}, {0.95, "0.95"}, {0.99, "0.99"}, {0.999, "0.999"}}

// RemoteOptions select where samples are written in addition to the bundle.
type RemoteOptions struct {
	URL string // of the receiver: "http://host:9090/api/v1/write"
	// Authorization is the value of that header; "" sends none. It is never printed.
	Authorization string
	// Query is the query string of each request: "db=samples". It may contain a password, so it is never printed either.
	Query string
	// Quantiles sends summaries, quantiles of each interval, instead of native histograms.
	Quantiles bool
}

// Validate returns an error for an invalid address.
func (o RemoteOptions) Validate() error {
	u, err := url.Parse(o.URL)
	wrong := func(message, hint string) error {
		return &diag.Error{Code: "remote-write", Message: message, Hint: hint, Exit: diag.ExitUsage}
	}
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return wrong("invalid URL for remote write", "for example http://prometheus:9090/api/v1/write")
	case u.User != nil:
		return wrong("the URL for remote write holds a user or password, which every process of this machine could read",
			"set BRAGG_REMOTE_WRITE_AUTHORIZATION, or BRAGG_REMOTE_WRITE_AUTHORIZATION_FILE to the path of a file that holds it")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return wrong("the URL for remote write holds more than a path: what follows ? is often a token, which every process of this machine could read",
			"set BRAGG_REMOTE_WRITE_QUERY to what follows the question mark")
	}
	if _, err := url.ParseQuery(o.Query); err != nil || strings.ContainsAny(o.Query, "?#\r\n ") {
		return wrong("BRAGG_REMOTE_WRITE_QUERY is not a URL query", "such as: db=samples&token=TOKEN, with %26 for a & in a value")
	}
	return nil
}

// Host names the store, without the rest of the URL.
func (o RemoteOptions) Host() string {
	u, err := url.Parse(o.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Remote writes points, as they arrive, to a store that accepts Prometheus' remote write 1.0. It never blocks its caller: points
// that do not fit into its queue are dropped and counted, as are points that the store refuses or does not accept in time.
type Remote struct {
	options RemoteOptions
	api     *remote.API
	cancel  context.CancelFunc
	work    sync.WaitGroup
	sent    atomic.Uint64
	dropped atomic.Uint64
	full    chan struct{} // a batch waits; it may be a former one

	mu      sync.Mutex
	queue   []point
	waiting int // points of the queue, and of what is being sent
	most    int // that may wait
	closed  bool
	last    error // the latest reason for a drop
}

// point is one value of one series.
type point struct {
	labels labels.Labels
	millis int64
	value  float64
	times  *histogram.Histogram // nil: value counts
}

// StartRemote begins to write. The caller ends it with Close.
func StartRemote(o RemoteOptions) (*Remote, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	client := o.client()
	api, err := remote.NewAPI(o.URL, remote.WithAPIPath(""), remote.WithAPIHTTPClient(client),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: remoteBackoffMin, Max: remoteBackoffMax, MaxRetries: remoteTriesMax}))
	if err != nil {
		return nil, fmt.Errorf("write metrics to %q: %w", o.Host(), err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Remote{options: o, api: api, full: make(chan struct{}, 1), most: remoteQueueMax, cancel: cancel}
	r.work.Go(func() {
		defer client.CloseIdleConnections()
		r.run(ctx)
	})
	return r, nil
}

func (o RemoteOptions) client() *http.Client {
	return &http.Client{
		Transport:     authorized{o.Authorization, o.Query, &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1}},
		Timeout:       remoteTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// authorized adds header and query to each request. It follows no redirects, so they reach no other host; and the client above
// does not know them, so its errors do not contain them.
type authorized struct {
	value, query string
	next         http.RoundTripper
}

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if a.value != "" {
		r.Header.Set("Authorization", a.value)
	}
	r.URL.RawQuery = a.query
	return a.next.RoundTrip(r)
}

func (r *Remote) add(p point) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting >= r.most {
		r.dropped.Add(1)
		r.last = errRemoteQueue
		return
	}
	r.waiting++
	if r.queue = append(r.queue, p); len(r.queue) == remoteBatchMax {
		r.wake()
	}
}

var errRemoteQueue = fmt.Errorf("more than %d values waited", remoteQueueMax)

// wake tells the sender that a batch waits.
func (r *Remote) wake() {
	select {
	case r.full <- struct{}{}:
	default:
	}
}

func (r *Remote) drop(n int, why error) {
	r.dropped.Add(uint64(n))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = why
}

// times adds the state of a histogram, or of a summary with the quantiles of the interval h alone.
func (r *Remote) times(t *timeSeries, millis int64, h *stat.Histogram) {
	if !r.options.Quantiles {
		r.add(point{labels: t.labels, millis: millis, times: t.cells.histogram()})
		return
	}
	if t.parts == nil {
		t.parts = summaryLabels(t.labels)
	}
	r.add(point{labels: t.parts[0], millis: millis, value: float64(t.cells.count)})
	r.add(point{labels: t.parts[1], millis: millis, value: t.cells.sum})
	if h == nil || h.Count() == 0 {
		return // an interval without operations has no quantiles
	}
	for i, q := range remoteQuantiles {
		r.add(point{labels: t.parts[2+i], millis: millis, value: h.Quantile(q.q) / 1e9})
	}
}

// summaryLabels are the labels of count and sum, and of each quantile. They are made once for each series: there may be a million.
func summaryLabels(of labels.Labels) []labels.Labels {
	name := of.Get(model.MetricNameLabel)
	with := func(label, value string) labels.Labels { return labels.NewBuilder(of).Set(label, value).Labels() }
	all := []labels.Labels{with(model.MetricNameLabel, name+"_count"), with(model.MetricNameLabel, name+"_sum")}
	for _, q := range remoteQuantiles {
		all = append(all, with("quantile", q.text))
	}
	return all
}

// run sends the queued points in batches until the queue is closed and empty, or ctx ends. Points are sent once a second, or sooner
// where a whole batch waits; while the store is slow, batches become larger.
func (r *Remote) run(ctx context.Context) {
	tick := time.NewTicker(remoteBatchEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.full:
		case <-tick.C:
		}
		r.mu.Lock()
		all, closed := r.queue, r.closed
		r.queue = nil
		r.mu.Unlock()
		for batch := range slices.Chunk(all, remoteBatchMax) {
			r.send(ctx, batch)
			r.mu.Lock()
			r.waiting -= len(batch)
			r.mu.Unlock()
		}
		if closed && len(all) == 0 {
			return
		}
		if closed {
			r.wake()
		}
	}
}

func (r *Remote) send(ctx context.Context, batch []point) {
	if len(batch) == 0 {
		return
	}
	if _, err := r.api.Write(ctx, remote.WriteV1MessageType, request(batch)); err != nil {
		text := err.Error()
		r.drop(len(batch), fmt.Errorf("%s", text[:min(len(text), remoteErrorMax)]))
		return
	}
	r.sent.Add(uint64(len(batch)))
}

// request groups the points by series, in their order.
func request(batch []point) *prompb.WriteRequest {
	out := &prompb.WriteRequest{}
	byHash := map[uint64][]int{} // indexes of series; batch[first[i]] has the labels of series i
	var first []int
	for n, p := range batch {
		hash, at := p.labels.Hash(), -1
		for _, i := range byHash[hash] {
			if labels.Equal(batch[first[i]].labels, p.labels) {
				at = i
			}
		}
		if at < 0 {
			at = len(out.Timeseries)
			byHash[hash], first = append(byHash[hash], at), append(first, n)
			out.Timeseries = append(out.Timeseries, prompb.TimeSeries{Labels: prompb.FromLabels(p.labels, nil)})
		}
		series := &out.Timeseries[at]
		if p.times != nil {
			series.Histograms = append(series.Histograms, prompb.FromIntHistogram(p.millis, p.times))
			continue
		}
		series.Samples = append(series.Samples, prompb.Sample{Value: p.value, Timestamp: p.millis})
	}
	return out
}

// Close sends queued values until ctx ends, and returns how many values were accepted and how many were lost, with the
// latest reason. No values may be added after it.
func (r *Remote) Close(ctx context.Context) (sent, dropped uint64, why error) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.wake()
	stop := context.AfterFunc(ctx, r.cancel)
	defer stop()
	r.work.Wait()
	r.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent.Load(), r.dropped.Load(), r.last
}
