package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/trust"
	"github.com/braggdev/bragg/internal/wait"
)

// TLS names the files with the identity of an agent, which package trust creates for one run and one VM.
type TLS struct {
	Certificate string `json:"certificate,omitempty"`
	Key         string `json:"key,omitempty"`
	Authority   string `json:"authority,omitempty"`
}

const identityBytesMax = 64 << 10

// unixPrefix precedes the path of a socket in Config.Listen. A peer that can open the socket must still authenticate.
const unixPrefix = "unix:"

// settings reads the files. The agent accepts the controller of its run only.
func (t TLS) settings() (*tls.Config, error) {
	var f trust.Files
	for _, part := range []struct {
		what, path string
		into       *[]byte
	}{{"certificate", t.Certificate, &f.Certificate}, {"key", t.Key, &f.Key}, {"authority", t.Authority, &f.Authority}} {
		if part.path == "" {
			return nil, &diag.Error{
				Code: codeNoIdentity, Exit: diag.ExitRefused,
				Message: fmt.Sprintf("listen for controllers: the identity lacks its %s", part.what),
				Hint:    "an agent on a network serves only the controller of its run, and needs what proves both",
			}
		}
		info, err := os.Stat(part.path)
		if err == nil && info.Size() > identityBytesMax {
			err = errors.New("too long")
		}
		if err == nil {
			*part.into, err = os.ReadFile(part.path)
		}
		if err != nil {
			return nil, fmt.Errorf("read the identity's %s: %w", part.what, err)
		}
	}
	return trust.Server(f)
}

// listenTLS serves controllers over the network until ctx ends or the agent's certificate expires: no controller could
// connect after that.
func (s *Server) listenTLS(ctx context.Context, c Config) error {
	settings, err := c.TLS.settings()
	if err != nil {
		return err
	}
	network, address := "tcp", c.Listen
	if path, ok := strings.CutPrefix(c.Listen, unixPrefix); ok {
		network, address = "unix", path
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("listen for controllers: %w", err)
	}
	s.log.Printf("listening for controllers on %s", l.Addr())
	ends := settings.Certificates[0].Leaf.NotAfter
	bounded, cancel := context.WithDeadline(ctx, ends)
	defer cancel()
	if err := s.ServeTLS(bounded, l, settings); err != nil || ctx.Err() != nil {
		return err
	}
	return &diag.Error{
		Code: codeNoIdentity, Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("the identity expired at %s, and the clock shows %s", ends.UTC().Format(time.RFC3339),
			time.Now().UTC().Format(time.RFC3339)),
	}
}

// Bounds for what comes over the network.
const (
	handshakeMax    = 5 * time.Second        // until a stranger has proved who it is
	strangersAtOne  = 256                    // who have not said yet that they know this run
	strangerGrace   = 25 * time.Millisecond  // in which a stranger can say so, however many more come
	handshakesAtOne = 64                     // of those who have said so
	handshakeGrace  = 500 * time.Millisecond // for each of them, however many more come
	turnedAwayEvery = time.Second            // at most one line of the log about strangers
	acceptPause     = 50 * time.Millisecond
	pingAfter       = 15 * time.Second // of silence
	pingPatience    = 15 * time.Second
	writePatience   = 30 * time.Second
)

// ServeTLS serves every connection on l whose peer authenticates as settings demand, until ctx ends. It closes l. Without
// any request for as long as intervals are kept, it stops all load: the controller will not come back.
func (s *Server) ServeTLS(ctx context.Context, l net.Listener, settings *tls.Config) error {
	if settings == nil || settings.ClientAuth != tls.RequireAndVerifyClientCert || settings.MinVersion < tls.VersionTLS13 {
		_ = l.Close()
		return &diag.Error{Code: codeNoIdentity, Message: "serve controllers: no TLS identity is configured", Exit: diag.ExitRefused}
	}
	gate := &gate{
		Listener: l, settings: settings, passed: make(chan net.Conn), closed: make(chan struct{}), server: s,
		strangers: newCrowd(strangersAtOne, strangerGrace, strangerGrace, handshakeMax),
		known:     newCrowd(handshakesAtOne, handshakeGrace, handshakeGrace, handshakeGrace),
	}
	server := s.httpServer(ctx)
	// The other end, or the way to it, may vanish without a word.
	server.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingPatience, WriteByteTimeout: writePatience}
	server.ReadHeaderTimeout = handshakeMax
	s.heard.Store(int64(s.uptime()))
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	work.Go(func() { gate.run(ctx) })
	work.Go(func() { s.watchContact(ctx) })
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	err := server.Serve(countingListener{gate, s.meter})
	stopped()
	cancel()
	_ = gate.Close()
	_ = server.Close()
	work.Wait()
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// gate is a listener that lets through who has proved its identity. Handshakes go on side by side, and no handler sees a byte of
// a stranger. Who names the knock of the run in its first message, before anything was computed for it, is a stranger no more: its
// place among them is free again, and none of them pushes it out of the handshake that follows. The knock can be read on the network, so
// those who name it are a crowd as well, with more time for each.
type gate struct {
	net.Listener
	settings  *tls.Config
	strangers *crowd
	known     *crowd
	passed    chan net.Conn
	once      sync.Once
	closed    chan struct{}
	server    *Server

	mu     sync.Mutex
	said   time.Time // when the log last told of strangers
	unsaid int
}

// run accepts until the gate is closed; then all handshakes have ended.
func (g *gate) run(ctx context.Context) {
	var handshakes sync.WaitGroup
	defer handshakes.Wait()
	for {
		conn, err := g.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no descriptors left, or the stranger has gone already
			select {
			case <-time.After(acceptPause):
			case <-g.closed:
				return
			}
			continue
		}
		if m := g.strangers.admit(conn, g.closed); m != nil {
			handshakes.Go(func() { g.admit(ctx, m) })
		}
	}
}

var errCrowded = errors.New("too many handshakes of this run at a time")

func (g *gate) admit(ctx context.Context, m *member) {
	ctx, cancel := context.WithTimeout(ctx, handshakeMax)
	defer cancel()
	settings, known := g.settings.Clone(), (*member)(nil)
	settings.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if g.settings.GetConfigForClient != nil {
			if _, err := g.settings.GetConfigForClient(hello); err != nil {
				return nil, err
			}
		}
		m.answer(func() { known = g.known.admit(m.Conn, ctx.Done()) })
		if known == nil {
			return nil, errCrowded
		}
		m.leave()
		return nil, nil
	}
	conn := tls.Server(m, settings)
	err := conn.HandshakeContext(ctx)
	if known != nil {
		known.leave()
	}
	if err != nil {
		_ = m.Close()
		g.turnedAway(m.RemoteAddr(), err)
		return
	}
	select {
	case g.passed <- &heardConn{conn, g.server}:
	case <-g.closed:
		_ = conn.Close()
	}
}

// turnedAway writes to the log, but no more for many strangers than for some.
func (g *gate) turnedAway(from net.Addr, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.said) < turnedAwayEvery {
		g.unsaid++
		return
	}
	more := ""
	if g.unsaid > 0 {
		more = fmt.Sprintf(" (and %d more before)", g.unsaid)
	}
	g.said, g.unsaid = time.Now(), 0
	g.server.log.Printf("turned away %s: %v%s", from, err, more)
}

// Accept returns the next connection that was let through.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case conn := <-g.passed:
		return conn, nil
	case <-g.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (g *gate) Close() error {
	err := error(nil)
	g.once.Do(func() {
		close(g.closed)
		err = g.Listener.Close()
	})
	return err
}

// heardConn notes when its other end was heard.
type heardConn struct {
	net.Conn
	server *Server
}

func (c *heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.server.heard.Store(int64(c.server.uptime()))
	}
	return n, err
}

// contactLook is how often watchContact looks.
const contactLook = time.Second

// watchContact stops all load once no controller was heard for as long as intervals are kept.
func (s *Server) watchContact(ctx context.Context) {
	wait.Every(ctx, contactLook, func() {
		if silent := s.uptime() - time.Duration(s.heard.Load()); silent > s.options.BufferFor {
			if n := s.workloads.stopAll(); n > 0 {
				s.log.Printf("stopped %d loads: no controller was heard for %v", n, silent.Round(time.Second))
			}
		}
	})
}
