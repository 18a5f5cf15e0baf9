// Package prism is a client of Prism, the management of Nutanix clusters, on net/http. It knows requests, sessions, versions,
// pages and tasks, but no VMs: those are in package ahv.
//
//	Do ──▶ version of the namespace (OPTIONS …/unversioned/info, once)
//	   ──▶ session cookie, or user and password, or API key
//	   ──▶ answer; 408, 429, 502, 503, 504 and lost answers: again with the same NTNX-Request-Id, after a pause
//	   ──▶ Change: GET with its ETag ──▶ request with If-Match; after 412 both again
//	   ──▶ Await: polls the task of a change until it ends, or cancels it if the context ends before
//
// The official Go clients are not used: docs/decisions/0021-prism.md has the reasons. Requests follow the public API reference of v4; v2 and v3
// are reached by Raw where v4 lacks something.
package prism

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/clock"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/wait"
)

// Bounds of the client.
const (
	answerBytesMax = 32 << 20
	attemptsMax    = 6
	pauseFirst     = time.Second // doubles with each attempt
	pauseMax       = 30 * time.Second
	requestMax     = time.Minute // one attempt of a request, unless Options say otherwise; uploads have their own
	connectionsMax = 16
)

// DefaultPort of Prism.
const DefaultPort = "9440"

// Options define the Prism Central that a Client talks to.
type Options struct {
	Endpoint string // host, host:port, or https://host:port
	User     string
	Password string
	APIKey   string // in place of User and Password
	TLS      *tls.Config
	// Quicken divides all pauses; 0 is 1. Tests use it.
	Quicken int
	// RequestMax bounds one attempt of a request that is not an upload; 0 is a minute. Tests, whose requests hang, use it.
	RequestMax time.Duration
}

// Client talks to one Prism. It may be used by several goroutines.
type Client struct {
	base    *url.URL
	options Options
	http    *http.Client
	clock   clock.Dates

	mu       sync.Mutex
	versions map[string]string // by namespace
	session  map[string]string // cookies of the session, by name; empty: not logged in
}

// New makes a client. It does not connect.
func New(o Options) (*Client, error) {
	base, err := endpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, options: o, versions: map[string]string{}, session: map[string]string{}}
	transport := &http.Transport{
		TLSClientConfig: o.TLS, MaxConnsPerHost: connectionsMax, MaxIdleConnsPerHost: connectionsMax, IdleConnTimeout: time.Minute,
		TLSHandshakeTimeout: 20 * time.Second, ForceAttemptHTTP2: true,
		DialContext: (&net.Dialer{Timeout: 20 * time.Second}).DialContext,
	}
	// No redirects, so that a password reaches this host only, and no proxy from the environment.
	c.http = &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

func endpoint(text string) (*url.URL, error) {
	if text == "" {
		return nil, &diag.Error{
			Code: "prism-endpoint", Exit: diag.ExitData, Message: "open Prism: no endpoint",
			Hint: "write \"endpoint: prism.example.com\" in the target file",
		}
	}
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, &diag.Error{
			Code: "prism-endpoint", Exit: diag.ExitData, Message: "open Prism: the endpoint is not a host, host:port or https://host:port",
			Hint: "users and secrets belong into \"credentials\"",
		}
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), DefaultPort)
	}
	u.Path = ""
	return u, nil
}

// Host is the host of the endpoint, without port.
func (c *Client) Host() string { return c.base.Hostname() }

// MayBeUser reports whether a name that Prism gives may be that of the user of this client. Only Prism knows the name that belongs to an API key.
func (c *Client) MayBeUser(name string) bool {
	plain := func(s string) string {
		s, _, _ = strings.Cut(s, "@")
		return strings.ToLower(s)
	}
	return c.options.APIKey != "" || name == "" || plain(name) == plain(c.options.User)
}

// Address is the host and port of the endpoint.
func (c *Client) Address() string { return c.base.Host }

// Now is what the clock of Prism shows, within about half a second after the first answer. Statistics are requested and stamped by it, and it may
// be off by hours.
func (c *Client) Now() time.Time { return time.Now().Round(0).Add(c.clock.Ahead()) }

// Here is the time of this machine at which the clock of Prism showed t, but not in the future.
func (c *Client) Here(t time.Time) time.Time {
	now := time.Now().Round(0)
	if t = t.Add(-c.clock.Ahead()); t.After(now) {
		return now
	}
	return t
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// forget drops the session, so that the next request logs in.
func (c *Client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.session)
}

const cookiesMax = 20

// remember keeps the cookies of an answer. They are sent to this Prism alone.
func (c *Client) remember(cookies []*http.Cookie) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cookie := range cookies {
		switch {
		case cookie.MaxAge < 0 || cookie.Value == "":
			delete(c.session, cookie.Name)
		case len(c.session) < cookiesMax:
			c.session[cookie.Name] = cookie.Value
		}
	}
}

// Request is one request to Prism.
type Request struct {
	Method    string
	Namespace string // of v4: "vmm", "clustermgmt"
	Path      string // below the version: "ahv/config/vms"; each variable part by url.PathEscape
	Raw       string // whole path of older versions, in place of Namespace and Path
	Query     url.Values
	Body      any       // as JSON; nil: none
	Upload    Upload    // in place of Body
	IfMatch   string    // ETag
	ID        uuid.UUID // of repeats of the same request; zero: a new one
}

// Upload is a file that a request sends.
type Upload struct {
	Open  func() (io.ReadCloser, error) // once for each attempt; nil: none
	Bytes int64
}

// Answer is the body of an answer with its ETag.
type Answer struct {
	Status int
	Body   []byte
	ETag   string

	expired bool // the session of the request had ended
}

// Do makes a request and returns its answer. Errors are *StatusError where Prism refused it.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	if r.ID == (uuid.UUID{}) {
		r.ID = uuid.New()
	}
	path := r.Raw
	if path == "" {
		version, err := c.version(ctx, r.Namespace)
		if err != nil {
			return Answer{}, err
		}
		path = "/api/" + r.Namespace + "/" + version + "/" + r.Path
	}
	var body []byte
	if r.Body != nil {
		text, err := json.Marshal(r.Body)
		if err != nil {
			return Answer{}, fmt.Errorf("prism: encode a request: %w", err)
		}
		body = text
	}
	return c.repeat(ctx, r, path, body)
}

// repeat makes attempts until Prism gives an answer that is not temporary.
func (c *Client) repeat(ctx context.Context, r Request, path string, body []byte) (Answer, error) {
	pause := pauseFirst
	for attempt := 1; ; attempt++ {
		a, after, err := c.attempt(ctx, r, path, body)
		var status *StatusError
		refused := errors.As(err, &status)
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return a, context.Cause(ctx)
		case a.expired && attempt < attemptsMax:
			continue // with a login; a wrong password is not tried twice, which could lock the account
		case refused && !status.Temporary() || isCertificate(err):
			return a, err
		case attempt == attemptsMax:
			return a, fmt.Errorf("%w (%d attempts)", err, attempt)
		}
		if after == 0 {
			after = pause/2 + rand.N(pause/2)
			pause = min(2*pause, pauseMax)
		}
		if err := c.pause(ctx, min(after, pauseMax)); err != nil {
			return a, err
		}
	}
}

// pause waits, shorter in tests.
func (c *Client) pause(ctx context.Context, d time.Duration) error {
	return wait.For(ctx, d/time.Duration(max(1, c.options.Quicken)))
}

// attempt sends a request once. after is how long Prism wants the client to wait; 0: it does not say.
func (c *Client) attempt(ctx context.Context, r Request, path string, body []byte) (a Answer, after time.Duration, err error) {
	if r.Upload.Open == nil {
		bounded, cancel := context.WithTimeout(ctx, cmp.Or(c.options.RequestMax, requestMax))
		defer cancel()
		ctx = bounded
	}
	request, err := c.request(ctx, r, path, body)
	if err != nil {
		return a, 0, err
	}
	sent := time.Now()
	response, err := c.http.Do(request)
	if err != nil {
		return a, 0, c.unreachable(err)
	}
	c.clock.Add(sent, time.Now(), response.Header)
	defer response.Body.Close()
	a.Status, a.ETag = response.StatusCode, response.Header.Get("ETag")
	if a.ETag == "" {
		a.ETag = response.Header.Get("X-Ntnx-Etag")
	}
	if a.Body, err = io.ReadAll(io.LimitReader(response.Body, answerBytesMax+1)); err != nil {
		return a, 0, c.unreachable(err)
	}
	if len(a.Body) > answerBytesMax {
		return a, 0, &StatusError{What: what(r), Status: response.StatusCode, Text: fmt.Sprintf("more than %d bytes", answerBytesMax)}
	}
	if a.expired = response.StatusCode == http.StatusUnauthorized && request.Header.Get("Cookie") != ""; a.expired {
		c.forget()
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return a, retryAfter(response.Header), c.refusal(r, a)
	}
	c.remember(response.Cookies())
	return a, 0, nil
}

func (c *Client) request(ctx context.Context, r Request, path string, body []byte) (*http.Request, error) {
	u, err := c.base.Parse(path)
	if err != nil {
		return nil, fmt.Errorf("prism: request %q: %w", path, err)
	}
	u.RawQuery = r.Query.Encode()
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	if r.Upload.Open != nil {
		file, err := r.Upload.Open()
		if err != nil {
			return nil, err
		}
		content = file // closed by the transport
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, u.String(), content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("NTNX-Request-Id", r.ID.String())
	switch {
	case r.Upload.Open != nil:
		request.ContentLength = r.Upload.Bytes
		request.Header.Set("Content-Type", "application/octet-stream")
	case body != nil:
		request.Header.Set("Content-Type", "application/json")
	}
	if r.IfMatch != "" {
		request.Header.Set("If-Match", r.IfMatch)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.options.APIKey != "":
		request.Header.Set("X-ntnx-api-key", c.options.APIKey)
	case len(c.session) == 0:
		request.SetBasicAuth(c.options.User, c.options.Password)
	default:
		for name, value := range c.session {
			request.AddCookie(&http.Cookie{Name: name, Value: value})
		}
	}
	return request, nil
}

// retryAfter reads how long to wait, in seconds or as a date by the clock of the server.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(min(seconds, int(pauseMax/time.Second))) * time.Second
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return min(at.Sub(now), pauseMax)
	}
	return 0
}

// scrub removes the secrets of the client from a text that Prism sent, which may repeat what it received.
func (c *Client) scrub(text string) string {
	o := c.options
	basic := base64.StdEncoding.EncodeToString([]byte(o.User + ":" + o.Password))
	for _, secret := range []string{o.APIKey, o.Password, basic} {
		if secret != "" && secret != "Og==" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}
