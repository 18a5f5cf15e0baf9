package collect

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/trust"
)

// Bounds of one request.
const (
	bodyBytesMax    = 16 << 20
	headerBytesMax  = 64 << 10
	requestTimeout  = 30 * time.Second
	reasonRunesMax  = 300 // of a refusal
	connectionsMax  = 4   // per source
	connectionsIdle = 2
	jsonValuesMax   = 500_000 // objects and lists of one answer: small ones take a hundred times their text in memory
	secretBytesMin  = 4
)

// Client sends requests to one source: with its credential, to its own address, over verified TLS.
type Client struct {
	name   string // of the source
	base   string
	http   *http.Client
	user   string
	secret string
	header string // for a token; "" sends "Authorization: Bearer"
	hidden *strings.Replacer
}

// NewClient returns a client. service names the kind of system in hints: "Prism". tokenHeader carries a secret without a user; "" is
// Authorization.
func NewClient(o Options, service, tokenHeader string) (*Client, error) {
	u, err := url.Parse(o.Source.URL)
	if err != nil {
		return nil, fmt.Errorf("source %q: invalid url", o.Source.Name)
	}
	transport := &http.Transport{
		MaxConnsPerHost: connectionsMax, MaxIdleConnsPerHost: connectionsIdle, MaxResponseHeaderBytes: headerBytesMax,
		IdleConnTimeout: 10 * time.Minute, TLSHandshakeTimeout: requestTimeout, // no proxy: a source is read at its own address only
	}
	if u.Scheme == "https" {
		if transport.TLSClientConfig, err = o.Trust(service).ClientConfig(u.Hostname()); err != nil {
			return nil, fmt.Errorf("source %q: %w", o.Source.Name, err)
		}
	} else if o.Secret != "" && o.Source.TLS != target.TLSNone {
		return nil, fmt.Errorf("source %q: a credential over http:// can be read on the network", o.Source.Name)
	}
	return &Client{
		name: o.Source.Name, base: o.Source.URL, user: o.User, secret: o.Secret, header: tokenHeader, hidden: Hiding(o),
		http: &http.Client{
			Transport: transport, Timeout: requestTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Call is one request. Path is appended to the address of the source.
type Call struct {
	Method string // "" is GET
	Path   string
	Query  url.Values
	Header map[string]string
	Body   []byte
}

// Answer is the answer to a Call, with a status of 2xx.
type Answer struct {
	Body   []byte
	Header http.Header
	Clock  time.Time // of the server, to the second; zero if it does not say
}

// StatusError is an answer with another status.
type StatusError struct {
	Source string
	Status int
	Reason string // first line of the answer, without the credential
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("source %q: %d %s", e.Source, e.Status, http.StatusText(e.Status))
	// A JSON text of a refused login is long and says no more than its status.
	if refused := e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden; e.Reason != "" && !(refused && strings.HasPrefix(e.Reason, "{")) {
		text += ": " + e.Reason
	}
	return text
}

// Unwrap returns what to do about a refused login.
func (e *StatusError) Unwrap() error {
	switch e.Status {
	case http.StatusUnauthorized:
		return &diag.Error{
			Code: "source-login", Exit: diag.ExitUnavailable, Message: "the login was refused",
			Hint: "check the user and the secret of the source, and whether the account is locked",
		}
	case http.StatusForbidden:
		return &diag.Error{
			Code: "source-login", Exit: diag.ExitUnavailable, Message: "a right is missing",
			Hint: "docs/guides/storage-counters.md lists the role that each system needs",
		}
	}
	return nil
}

// Do sends one request. It does not repeat it: the next reading is the next try.
func (c *Client) Do(ctx context.Context, call Call) (Answer, error) {
	address := c.base
	if call.Path != "" {
		address = joinURL(c.base, call.Path)
	}
	if len(call.Query) > 0 {
		address += "?" + call.Query.Encode()
	}
	method := call.Method
	if method == "" {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(call.Body))
	if err != nil {
		return Answer{}, fmt.Errorf("source %q: invalid url", c.name)
	}
	request.Header.Set("User-Agent", "bragg")
	for name, value := range call.Header {
		request.Header.Set(name, value)
	}
	c.authorize(request)
	response, err := c.http.Do(request)
	if err != nil {
		return Answer{}, c.explain(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyBytesMax+1))
	switch {
	case err != nil:
		return Answer{}, c.explain(err)
	case response.StatusCode/100 == 3:
		// The credential is for the address in the target file only.
		return Answer{}, &StatusError{Source: c.name, Status: response.StatusCode, Reason: fmt.Sprintf("redirect to %q is not followed", c.Mask(response.Header.Get("Location")))}
	case response.StatusCode < 200 || response.StatusCode > 299:
		return Answer{}, &StatusError{Source: c.name, Status: response.StatusCode, Reason: c.Mask(firstLine(body))}
	case len(body) > bodyBytesMax:
		return Answer{}, fmt.Errorf("source %q: an answer has more than %d bytes", c.name, bodyBytesMax)
	}
	clock, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		clock = time.Time{}
	}
	return Answer{Body: body, Header: response.Header, Clock: clock}, nil
}

func (c *Client) authorize(r *http.Request) {
	switch {
	case c.user != "":
		r.SetBasicAuth(c.user, c.secret)
	case c.secret != "" && c.header != "":
		r.Header.Set(c.header, c.secret)
	case c.secret != "":
		r.Header.Set("Authorization", "Bearer "+c.secret)
	}
}

// explain names the source instead of the URL, and keeps hints on certificates.
func (c *Client) explain(err error) error {
	var wrong *trust.CertificateError
	if errors.As(err, &wrong) {
		return &diag.Error{Code: "source-certificate", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("source %q: %s", c.name, wrong.Reason), Hint: wrong.Hint}
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return fmt.Errorf("source %q: %w", c.name, err)
}

// JSON decodes the answer. The error does not contain the text.
func (a Answer) JSON(to any) error {
	if n := bytes.Count(a.Body, []byte("{")) + bytes.Count(a.Body, []byte("[")); n > jsonValuesMax {
		return fmt.Errorf("an answer has %d objects, more than %d", n, jsonValuesMax)
	}
	return json.Unmarshal(a.Body, to)
}

// Mask makes a text of the source one short line without the credential.
func (c *Client) Mask(text string) string {
	return textio.Clip(textio.Line(c.Hide(text)), reasonRunesMax)
}

// Hide removes the credential from a text of the source, which may repeat what it was sent.
func (c *Client) Hide(text string) string { return c.hidden.Replace(text) }

// Hiding replaces the secret in the forms in which it is sent and repeated. Shorter ones would be found in any text.
func Hiding(o Options) *strings.Replacer {
	user, secret := o.User, o.Secret
	if len(secret) < secretBytesMin {
		return strings.NewReplacer()
	}
	var list []string
	for _, form := range []string{base64.StdEncoding.EncodeToString([]byte(user + ":" + secret)), url.QueryEscape(secret), html.EscapeString(secret), secret} {
		list = append(list, form, "***")
	}
	return strings.NewReplacer(list...)
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func firstLine(body []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body[:min(len(body), 4096)])), "\n")
	return line
}
