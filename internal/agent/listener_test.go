package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/trust"
)

func newAuthority(t *testing.T, run string, life time.Duration) *trust.Authority {
	t.Helper()
	a, err := trust.New(run, life)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func identity(t *testing.T, a *trust.Authority, vm string) trust.Files {
	t.Helper()
	f, err := a.Agent(vm)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// serveTLS serves s to the controller of a's run on an address of this machine, until the test ends.
func serveTLS(t *testing.T, s *Server, a *trust.Authority) string {
	t.Helper()
	settings, err := trust.Server(identity(t, a, s.options.VM))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.ServeTLS(ctx, l, settings) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String()
}

// dialTLS is what a provider does.
func dialTLS(ctx context.Context, address string, settings *tls.Config) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, settings)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// TestOnlyTheControllerOfThisRunIsServed: of all who come, only one gets a byte that the agent did not owe to the handshake.
func TestOnlyTheControllerOfThisRunIsServed(t *testing.T) {
	const vm = "DB-0001"
	ours, theirs := newAuthority(t, "run-1", time.Hour), newAuthority(t, "run-2", time.Hour)
	again := newAuthority(t, "run-1", time.Hour) // the same name, and another authority
	if err := ours.Expect(-48 * time.Hour); err != nil {
		t.Fatal(err)
	}
	expired := ours.Controller(vm)
	if err := ours.Expect(time.Hour); err != nil {
		t.Fatal(err)
	}
	as := func(base *tls.Config, f trust.Files) *tls.Config {
		pair, err := tls.X509KeyPair(f.Certificate, f.Key)
		if err != nil {
			t.Fatal(err)
		}
		base.Certificates = []tls.Certificate{pair}
		return base
	}
	blind := func(c *tls.Config) *tls.Config { // speaks to anybody: only the agent can refuse
		c.VerifyConnection = nil
		return c
	}
	anonymous := ours.Controller(vm)
	anonymous.Certificates = nil
	older := ours.Controller(vm)
	older.MinVersion, older.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	s := newTestServer(t, newScripted(), nil)
	address := serveTLS(t, s, ours)
	for name, tt := range map[string]struct {
		settings *tls.Config
		ok       bool
	}{
		"plain TCP":                      {nil, false},
		"TLS 1.2":                        {blind(older), false},
		"no certificate":                 {blind(anonymous), false},
		"another authority":              {blind(again.Controller(vm)), false},
		"another run":                    {blind(theirs.Controller(vm)), false},
		"expired":                        {blind(expired), false},
		"an agent as controller":         {as(blind(ours.Controller(vm)), identity(t, ours, "other")), false},
		"this agent as controller":       {as(blind(ours.Controller(vm)), identity(t, ours, vm)), false},
		"right, and wants another agent": {ours.Controller("DB-0002"), false},
		"right":                          {ours.Controller(vm), true},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.meter.received.Load() + s.meter.sent.Load() // of what has passed the gate, decrypted
			got, err := speakHTTP2(t, address, tt.settings)
			if (err == nil) != tt.ok {
				t.Errorf("got %+v, %v", got, err)
			}
			if n := s.meter.received.Load() + s.meter.sent.Load() - before; (n > 0) != tt.ok {
				t.Errorf("%d bytes passed the gate", n)
			}
		})
	}
}

// speakHTTP2 greets what is at an address, and returns an error unless it answers.
func speakHTTP2(t *testing.T, address string, settings *tls.Config) (wire.Hello, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only against hanging
	defer cancel()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if settings != nil {
		conn = tls.Client(conn, settings)
	}
	c := client.New(conn, client.Options{})
	defer c.Close()
	return c.Hello(ctx)
}

// TestPlainSpeakersGetNothing: who speaks HTTP/2, or HTTP/1, or nothing, without TLS is answered with at most an alert.
func TestPlainSpeakersGetNothing(t *testing.T) {
	s := newTestServer(t, newScripted(), nil)
	address := serveTLS(t, s, newAuthority(t, "run-1", time.Hour))
	for _, said := range []string{
		"GET /v1/hello HTTP/1.1\r\nHost: agent\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x16\x03\x01\x00\x00",
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, said)
		answer, _ := io.ReadAll(conn)
		_ = conn.Close()
		// An alert of TLS is a record of type 21 with two bytes.
		if len(answer) > 0 && (answer[0] != 21 || len(answer) != 7) {
			t.Errorf("%q was answered with %q", said, answer)
		}
	}
}

// TestEveryRouteIsKnown: an agent serves exactly these routes on a network, all behind the same authentication.
func TestEveryRouteIsKnown(t *testing.T) {
	text, err := os.ReadFile("handler.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile(`mux\.Handle(?:Func)?\("([^"]+)", ([\w.]+)`).FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1]+" "+m[2])
	}
	want := []string{
		"GET /v1/hello func", "GET /v1/health func", "GET /v1/log s.serveLog", "GET /metrics s.meter.expose", "PUT /v1/workloads/{id} s.fenced",
		"POST /v1/workloads/{id}/start s.fenced", "POST /v1/workloads/{id}/split s.fenced", "GET /v1/workloads/{id}/intervals s.stream",
		"POST /v1/workloads/{id}/acknowledge s.fenced", "POST /v1/workloads/{id}/stop s.fenced", "DELETE /v1/workloads/{id} s.fenced",
	}
	if strings.Join(found, "\n") != strings.Join(want, "\n") {
		t.Errorf("routes are\n%s\nwant\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		// Command listens in two places: for metrics, which are public and change nothing, and behind the gate.
		if n := strings.Count(string(text), "net.Listen("); n > 0 && name != "listener.go" && name != "command.go" || n > 1 {
			t.Errorf("%s listens %d times", name, n)
		}
		if strings.Contains(string(text), "http.DefaultServeMux") || strings.Contains(string(text), "http.Handle") &&
			!strings.Contains(string(text), "http.Handler") {
			t.Errorf("%s uses handlers that anybody may add to", name)
		}
	}
}

// TestListenNeedsAnIdentity: without an identity the agent does not listen, and the error says what is missing.
func TestListenNeedsAnIdentity(t *testing.T) {
	a := newAuthority(t, "run-1", time.Hour)
	good := identity(t, a, "DB-0001")
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	files := TLS{Certificate: write("cert", good.Certificate), Key: write("key", good.Key), Authority: write("authority", good.Authority)}
	other := write("other", identity(t, a, "DB-0001").Key)
	huge := write("huge", bytes.Repeat([]byte("x"), identityBytesMax+1))
	for name, tt := range map[string]struct {
		tls  TLS
		want string
	}{
		"none":          {TLS{}, "lacks its certificate"},
		"no key":        {TLS{Certificate: files.Certificate, Authority: files.Authority}, "lacks its key"},
		"no authority":  {TLS{Certificate: files.Certificate, Key: files.Key}, "lacks its authority"},
		"missing file":  {TLS{Certificate: filepath.Join(dir, "none"), Key: files.Key, Authority: files.Authority}, "no such file"},
		"another key":   {TLS{Certificate: files.Certificate, Key: other, Authority: files.Authority}, "does not match"},
		"huge":          {TLS{Certificate: huge, Key: files.Key, Authority: files.Authority}, "too long"},
		"mixed up":      {TLS{Certificate: files.Key, Key: files.Certificate, Authority: files.Authority}, "certificate"},
		"no authority2": {TLS{Certificate: files.Certificate, Key: files.Key, Authority: files.Key}, "no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := json.Marshal(Config{VM: "DB-0001", Listen: "127.0.0.1:0", TLS: tt.tls})
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			if code := Command(t.Context(), []string{string(config)}, Program{Stderr: &said}); code == diag.ExitPass {
				t.Error("an agent listened on all addresses")
			}
			if strings.Contains(said.String(), "listening") || !strings.Contains(said.String(), tt.want) {
				t.Errorf("it said %q, want %q", &said, tt.want)
			}
		})
	}
	s := newTestServer(t, newScripted(), nil)
	for name, settings := range map[string]*tls.Config{
		"no settings": nil, "anybody": {MinVersion: tls.VersionTLS13}, "older": {ClientAuth: tls.RequireAndVerifyClientCert},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.ServeTLS(t.Context(), l, settings); diag.ExitCode(err) != diag.ExitRefused {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestExpiredAgentEnds: an agent that no controller can connect to any more exits.
func TestExpiredAgentEnds(t *testing.T) {
	good := identity(t, newAuthority(t, "run-1", -48*time.Hour), "DB-0001")
	dir := t.TempDir()
	c := Config{VM: "DB-0001", Listen: "127.0.0.1:0", TLS: TLS{
		Certificate: filepath.Join(dir, "c"), Key: filepath.Join(dir, "k"), Authority: filepath.Join(dir, "a"),
	}}
	for path, text := range map[string][]byte{c.TLS.Certificate: good.Certificate, c.TLS.Key: good.Key, c.TLS.Authority: good.Authority} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newTestServer(t, newScripted(), nil)
	if err := s.listenTLS(t.Context(), c); diag.ExitCode(err) != diag.ExitUnavailable || !strings.Contains(err.Error(), "expired") {
		t.Errorf("got %v", err)
	}
}

// TestLoadWithoutAControllerIsStopped: when no controller was heard for as long as intervals are kept, the load ends by itself.
func TestLoadWithoutAControllerIsStopped(t *testing.T) {
	a := newAuthority(t, "run-1", time.Hour)
	g := newScripted()
	s := newTestServer(t, g, func(o *Options) { o.BufferFor = 50 * time.Millisecond })
	address := serveTLS(t, s, a)
	conn, err := dialTLS(t.Context(), address, a.Controller(s.options.VM))
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(conn, client.Options{})
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), workload(), newCollector()) }()
	<-g.prepared
	_ = c.Close()
	if err := <-done; err != nil && !errors.Is(err, load.ErrLost) {
		t.Errorf("got %v", err)
	}
	waitUntil(t, func() bool { return !s.health().Workloads[0].Running })
}
