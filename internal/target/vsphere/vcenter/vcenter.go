// Package vcenter is the connection to one vCenter: session, repetition of calls, tasks, errors in the user's terms. It
// knows nothing of VMs and runs.
//
//	Dial ──▶ Client ──▶ call ──▶ session expired? log in again, once for all callers ──▶ busy? wait and repeat (link.go)
//	                └──▶ Task: polls with growing pauses until it ends, is lost, or takes too long          (task.go)
//	errors ──▶ Explain: what vCenter refused, on which object, and what to do                              (errors.go)
package vcenter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/httpbound"
	"github.com/braggdev/bragg/internal/trust"
)

// Bounds of one call.
const (
	// answerMax is how long vCenter may take to begin its answer, and then to end it.
	answerMax      = 2 * time.Minute
	answerBytesMax = 256 << 20
	dialMax        = 20 * time.Second
	goodbyeMax     = 5 * time.Second
)

// ErrClosed is the error of a closed Client.
var ErrClosed = errors.New("the target is closed")

// Options describe a vCenter.
type Options struct {
	Endpoint string // host, host:port or URL
	User     string
	Password string
	Trust    trust.Service
	// Transport carries requests in place of connections to Endpoint; nil: those, with certificates that Trust accepts.
	Transport http.RoundTripper
}

// Client is a connection to a vCenter. Its calls log in again after the session expired.
type Client struct {
	*vim25.Client
	link   *link
	closed atomic.Bool
}

// URL returns the address of the API at an endpoint of a target file.
func URL(endpoint string) (*url.URL, error) {
	text := endpoint
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	switch {
	case err != nil || u.Host == "":
		return nil, badEndpoint(endpoint, "write the name of the vCenter, such as vcenter.example.com")
	case u.User != nil:
		return nil, badEndpoint("", "a target file holds no passwords: name the user under credentials: {platform: …}")
	case u.Scheme != "https":
		return nil, badEndpoint(endpoint, "vCenter speaks https only")
	case u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/sdk":
		return nil, badEndpoint(endpoint, "the address ends after the host, or in /sdk")
	}
	u.Path = "/sdk"
	return u, nil
}

func badEndpoint(endpoint, hint string) error {
	e := &diag.Error{Code: "vsphere-endpoint", Exit: diag.ExitData, Message: "the endpoint of the target file is not usable", Hint: hint}
	if endpoint != "" {
		e.Message = fmt.Sprintf("the endpoint %q of the target file is not usable", endpoint)
	}
	return e
}

// Dial connects and logs in.
func Dial(ctx context.Context, o Options) (*Client, error) {
	u, err := URL(o.Endpoint)
	if err != nil {
		return nil, err
	}
	secure, err := o.Trust.ClientConfig(u.Hostname())
	if err != nil {
		return nil, &diag.Error{Code: "vsphere-certificate", Exit: diag.ExitData, Message: "read the authority of the vCenter", Err: err}
	}
	wire := soap.NewClient(u, true) // certificates are checked by secure
	wire.UserAgent, wire.Namespace, wire.Version = "bragg", "urn:"+vim25.Namespace, vim25.Version
	plant(wire.DefaultTransport(), secure)
	wire.CheckRedirect = httpbound.Refuse // the login would go with it
	next := o.Transport
	if next == nil {
		next = wire.DefaultTransport()
	}
	wire.Transport = &httpbound.Transport{Next: next, BytesMax: answerBytesMax, TimeMax: answerMax}
	l := &link{wire: wire, user: url.UserPassword(o.User, o.Password), host: u.Host}
	inner, err := vim25.NewClient(ctx, repeating{l})
	if err != nil {
		l.hangUp()
		return nil, l.explain("reach the vCenter", err)
	}
	inner.Client, inner.RoundTripper = wire, l
	l.sessions = session.NewManager(&vim25.Client{Client: wire, ServiceContent: inner.ServiceContent, RoundTripper: repeating{l}})
	c := &Client{Client: inner, link: l}
	if err := l.login(ctx, 0); err != nil {
		l.hangUp()
		return nil, l.explain("log in to the vCenter", err)
	}
	if !c.IsVC() {
		c.Close()
		return nil, &diag.Error{
			Code: "vsphere-not-vcenter", Exit: diag.ExitData, Message: fmt.Sprintf("%s is %s, not a vCenter", u.Host, inner.ServiceContent.About.FullName),
			Hint: "clones, DRS and HA need a vCenter: name the one that manages the host",
		}
	}
	return c, nil
}

// plant makes the transport check certificates as the target file says, in place of govmomi's own way.
func plant(t *http.Transport, secure *tls.Config) {
	t.DialTLSContext = nil
	t.TLSClientConfig = secure
	t.TLSHandshakeTimeout = dialMax
	t.ResponseHeaderTimeout = answerMax
	t.MaxIdleConnsPerHost = 16
}

// RoundTrip makes one call; see link.
func (c *Client) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	if c.closed.Load() {
		return ErrClosed
	}
	return c.link.RoundTrip(ctx, req, res)
}

// Collector reads properties.
func (c *Client) Collector() *property.Collector { return property.DefaultCollector(c.Client) }

// Explain puts the action before an error, and names what the user can do.
func (c *Client) Explain(action string, err error) error { return c.link.explain(action, err) }

// Now reads vCenter's clock: at is its time when it was here by the clock of this program.
func (c *Client) Now(ctx context.Context) (at, here time.Time, err error) {
	before := time.Now()
	now, err := methods.GetCurrentTime(ctx, c.Client)
	if err != nil {
		return time.Time{}, time.Time{}, c.Explain("read the clock of the vCenter", err)
	}
	return *now, before.Add(time.Since(before) / 2), nil
}

// SessionKey is the identity of the current session, which some calls want.
func (c *Client) SessionKey(ctx context.Context) (string, error) {
	s, err := session.NewManager(c.Client).UserSession(ctx)
	if err != nil {
		return "", c.Explain("read the session", err)
	}
	if s == nil {
		return "", c.Explain("read the session", soap.WrapVimFault(&types.NotAuthenticated{}))
	}
	return s.Key, nil
}

// User is the name of the session's user as vCenter shows it.
func (c *Client) User() string { return c.link.name() }

// Close logs out and ends all connections. Later calls fail.
func (c *Client) Close() {
	if c.closed.Swap(true) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeMax)
	defer cancel()
	c.link.logout(ctx)
	c.link.hangUp()
}

// Closed reports whether Close was called.
func (c *Client) Closed() bool { return c.closed.Load() }

// IsUser reports whether a name, as tasks and events show it, is that of this session's user: "DOMAIN\user" for user@domain.
func (c *Client) IsUser(name string) bool {
	plain := func(s string) string {
		if _, after, ok := strings.Cut(s, `\`); ok {
			s = after
		}
		s, _, _ = strings.Cut(s, "@")
		return strings.ToLower(s)
	}
	return plain(name) == plain(c.User())
}
