package bmc

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/trust"
)

const (
	redfishPortTLS      = 443
	redfishPortPlain    = 80
	redfishBodyBytesMax = 1 << 20
	redfishHeaderMax    = 64 << 10
	redfishPathBytesMax = 1024
	redfishRedirectsMax = 3
)

// wire sends requests to one address only: no proxy, no redirect to another host, no link to one. Each request logs in by
// itself (basic authentication), because a session would remain on the BMC, which has only a few.
type wire struct {
	node   string
	base   url.URL
	user   string
	secret password
	client *http.Client
}

func newWire(node string, b target.BMC, user string, secret password) (*wire, error) {
	const what = "speak Redfish"
	w := &wire{node: node, user: user, secret: secret, base: url.URL{Scheme: "https"}}
	port := redfishPortTLS
	var check *tls.Config
	if b.TLS == target.TLSNone {
		w.base.Scheme, port = "http", redfishPortPlain
	}
	host, port, err := hostPort(b.Address, port)
	if err != nil {
		return nil, fault(CodeUnreachable, node, what, fmt.Errorf("address %q: %w", b.Address, err))
	}
	if b.TLS != target.TLSNone {
		if check, err = serviceOf(b).ClientConfig(host); err != nil {
			return nil, fault(CodeCertificate, node, what, err)
		}
	}
	if strings.ContainsRune(user, ':') {
		return nil, fault(CodeCredential, node, what, errors.New(`the user has a ":", which HTTP cannot carry`))
	}
	w.base.Host = net.JoinHostPort(host, strconv.Itoa(port))
	w.client = &http.Client{
		CheckRedirect: w.redirect,
		Transport: &http.Transport{
			Proxy: nil, TLSClientConfig: check, DisableCompression: true, MaxResponseHeaderBytes: redfishHeaderMax, DisableKeepAlives: true,
			TLSHandshakeTimeout: 30 * time.Second,
		},
	}
	return w, nil
}

func serviceOf(b target.BMC) trust.Service {
	return trust.Service{Name: "the BMC", Fingerprint: b.Fingerprint, CAFile: b.CAFile, Unverified: b.TLS == target.TLSUnverified}
}

// errElsewhere is the error for a redirect to another host.
var errElsewhere = errors.New("redirect to another host refused")

// redirect follows GET redirects within the address: services send "/redfish/v1" to "/redfish/v1/".
func (w *wire) redirect(to *http.Request, via []*http.Request) error {
	// A redirected POST would become a GET, which does nothing and succeeds.
	if to.URL.Scheme != w.base.Scheme || to.URL.Host != w.base.Host || via[0].Method != http.MethodGet || len(via) > redfishRedirectsMax {
		return errElsewhere
	}
	return nil
}

type request struct {
	what, method, path string
	body               any
}

// address makes a URL from a link that the service sent.
func (w *wire) address(link string) (*url.URL, error) {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || len(link) > redfishPathBytesMax || !strings.HasPrefix(u.Path, "/redfish/") ||
		strings.Contains(u.Path, "/../") {
		return nil, fmt.Errorf("the link %q: %w", quoteOutside(link), errElsewhere)
	}
	full := w.base
	full.Path, full.RawPath, full.RawQuery = u.Path, u.RawPath, u.RawQuery
	return &full, nil
}

// do sends one request and decodes its answer into out, unless out is nil.
func (w *wire) do(ctx context.Context, q request, out any) error {
	u, err := w.address(q.path)
	if err != nil {
		return fault(CodeGarbage, w.node, q.what, err)
	}
	var body io.Reader
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, u.String(), body)
	if err != nil {
		return fault(CodeGarbage, w.node, q.what, err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("OData-Version", "4.0")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.SetBasicAuth(w.user, w.secret.text)
	answer, err := w.client.Do(r)
	if err != nil {
		return w.explain(ctx, q.what, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, redfishBodyBytesMax+1))
	switch {
	case answer.StatusCode >= 300:
		return w.refused(q.what, answer.StatusCode, text)
	case err != nil:
		return w.explain(ctx, q.what, err)
	case len(text) > redfishBodyBytesMax:
		return fault(CodeGarbage, w.node, q.what, fmt.Errorf("an answer of more than %d bytes", redfishBodyBytesMax))
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fault(CodeGarbage, w.node, q.what, fmt.Errorf("the answer is not what Redfish sends: %s", quoteOutside(err.Error())))
	}
	return nil
}

func (w *wire) explain(ctx context.Context, what string, err error) error {
	var wrong *trust.CertificateError
	switch {
	case errors.As(err, &wrong):
		e := fault(CodeCertificate, w.node, what, wrong)
		e.Hint = wrong.Hint
		return e
	case errors.Is(err, errElsewhere):
		return fault(CodeGarbage, w.node, what, errElsewhere)
	case ctx.Err() != nil:
		return ended(ctx, w.node, what)
	}
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err // without the URL, whose address is in the target file
	}
	return fault(CodeUnreachable, w.node, what, errors.New(quoteOutside(err.Error())))
}

// refused explains a status, with the service's own message.
func (w *wire) refused(what string, status int, text []byte) error {
	said := fmt.Sprintf("HTTP status %d", status)
	var body struct {
		Error struct {
			Message  string `json:"message"`
			Extended []struct {
				Message string `json:"Message"`
			} `json:"@Message.ExtendedInfo"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &body) == nil {
		message := body.Error.Message
		if len(body.Error.Extended) > 0 && body.Error.Extended[0].Message != "" {
			message = body.Error.Extended[0].Message
		}
		if message != "" {
			said += ": " + quoteOutside(message)
		}
	}
	code := CodeRefused
	switch {
	case status == http.StatusUnauthorized:
		code, said = CodeLogin, "user or password is wrong"
	case status == http.StatusForbidden:
		code = CodeForbidden
	case status < 400:
		code = CodeGarbage
	}
	return fault(code, w.node, what, errors.New(said))
}
