// Package api reaches the API server of a cluster: objects of one namespace, what is watched of them, connections to pods.
//
//	kubeconfig | endpoint + token | in the cluster ──▶ Client ──▶ Create, Get, List, Delete      (client.go)
//	                                                     │
//	                                     one list, then one watch ──▶ Mirror ──▶ Await           (mirror.go)
//	                                                     └──▶ Tunnel: a port of a pod             (tunnel.go)
//	answers ──▶ Ahead: what the server's clock shows             (clock.go)
//
// Every call has a bound, is repeated where the server is busy, and is counted. Errors are in the cluster's own words
// (errors.go). The package uses the dynamic client: objects of extensions, such as snapshots, need no types of their own.
package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/braggdev/bragg/internal/clock"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/httpbound"
	"github.com/braggdev/bragg/internal/trust"
)

// Access says which cluster is meant, and as whom. Without Endpoint it is that of Kubeconfig, or of the pod that this program
// runs in.
type Access struct {
	Endpoint string        // URL of the API server
	Token    string        // with Endpoint
	Trust    trust.Service // with Endpoint
	// Kubeconfig is the path of the file, "" for $KUBECONFIG and ~/.kube/config; Context is one of its contexts, "" for its current one.
	Kubeconfig, Context string
	Namespace           string // "": that of the context, of the own pod, or "default"
	UserAgent           string
}

// Client makes calls. Its methods may be called concurrently.
type Client struct {
	Namespace string
	Host      string // of the API server, for messages
	InCluster bool   // this program runs in a pod of the cluster

	dynamic dynamic.Interface
	http    *http.Client
	config  *rest.Config
	ctx     context.Context // of all calls and watches; ends with Close
	close   context.CancelFunc
	calls   atomic.Int64
	clock   clock.Dates
	reached atomic.Bool // a call has succeeded
}

// Limits of calls: what this program sends at most, beside what the server allows each of its users.
const (
	callsPerSecond = 300
	callsBurst     = 600
)

// New prepares the connection. It makes no calls.
func New(a Access) (*Client, error) {
	config, namespace, inside, err := load(a)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = callsPerSecond, callsBurst
	config.UserAgent = a.UserAgent
	config.WarningHandler = rest.NoWarnings{} // they are for people who write manifests
	c := &Client{Namespace: namespace, Host: hostOf(config.Host), InCluster: inside}
	c.ctx, c.close = context.WithCancel(context.Background())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return observed{&httpbound.Transport{Next: next, BytesMax: answerMax, Endless: isWatch}, c}
	})
	c.config = config
	if c.http, err = rest.HTTPClientFor(config); err == nil {
		c.http.CheckRedirect = httpbound.Refuse // the token would go with it
		c.dynamic, err = dynamic.NewForConfigAndClient(config, c.http)
	}
	if err != nil {
		return nil, &diag.Error{Code: "kube-config", Exit: diag.ExitData, Message: "prepare the connection to the cluster", Err: err}
	}
	return c, nil
}

// Close ends all calls and watches.
func (c *Client) Close() { c.close() }

// Closed reports whether Close was called.
func (c *Client) Closed() bool { return c.ctx.Err() != nil }

// ErrClosed is the error of calls of a closed client.
var ErrClosed = errors.New("the target is closed")

// Calls is the number of requests so far, watches included.
func (c *Client) Calls() int64 { return c.calls.Load() }

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

// load reads the configuration. Errors do not contain secrets: the loader names files and fields.
func load(a Access) (config *rest.Config, namespace string, inside bool, err error) {
	if a.Endpoint != "" {
		config, err = endpoint(a)
		return config, orDefault(a.Namespace), false, err
	}
	if a.Kubeconfig == "" && a.Context == "" {
		if config, err = rest.InClusterConfig(); err == nil {
			return config, firstOf(a.Namespace, podNamespace()), true, nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.Kubeconfig
	deferred := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.Context})
	if config, err = deferred.ClientConfig(); err != nil {
		return nil, "", false, explainConfig(rules, a.Context, err)
	}
	namespace = a.Namespace
	if namespace == "" {
		namespace, _, _ = deferred.Namespace()
	}
	return config, orDefault(namespace), false, nil
}

func endpoint(a Access) (*rest.Config, error) {
	u, err := url.Parse(a.Endpoint)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, &diag.Error{
			Code: "kube-endpoint", Exit: diag.ExitData, Message: fmt.Sprintf("endpoint %q: want a URL such as https://10.0.0.1:6443", a.Endpoint),
		}
	}
	secure, err := a.Trust.ClientConfig(u.Hostname())
	if err != nil {
		return nil, err
	}
	secure.NextProtos = []string{"h2", "http/1.1"}
	// The checks of the target file replace those of the library, which knows no fingerprints.
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: secure, ForceAttemptHTTP2: true, TLSHandshakeTimeout: callMax, IdleConnTimeout: idleMax,
	}
	return &rest.Config{Host: a.Endpoint, BearerToken: a.Token, Transport: transport}, nil
}

const idleMax = 90 * time.Second

// secure is the TLS of connections beside the client's own ones, those of tunnels.
func (c *Client) secure() (*tls.Config, error) {
	if t, ok := c.config.Transport.(*http.Transport); ok {
		own := t.TLSClientConfig.Clone()
		own.NextProtos = []string{"http/1.1"}
		return own, nil
	}
	own, err := rest.TLSConfigFor(c.config)
	if err != nil {
		return nil, err
	}
	if own == nil {
		own = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	own = own.Clone()
	own.NextProtos = []string{"http/1.1"}
	return own, nil
}

const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func podNamespace() string {
	text, err := os.ReadFile(podNamespaceFile)
	if err != nil {
		return "default"
	}
	return orDefault(strings.TrimSpace(string(text)))
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func orDefault(namespace string) string { return firstOf(namespace, "default") }

// isWatch reports whether a request is a watch, whose single events the library bounds.
func isWatch(r *http.Request) bool {
	watching, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	return watching
}
