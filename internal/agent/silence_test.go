package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/load"
)

// hanging is an agent whose library answers pings while nothing else in it does, as in a guest whose kernel has lost a processor.
type hanging struct {
	server *Server
	hangs  atomic.Bool
	ends   chan struct{}
}

func (h *hanging) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.hangs.Load() {
		select {
		case <-r.Context().Done():
		case <-h.ends:
		}
		return
	}
	h.server.Handler().ServeHTTP(w, r)
}

func newHanging(t *testing.T, s *Server) (h *hanging, dial func(context.Context) (net.Conn, error)) {
	h = &hanging{server: s, ends: make(chan struct{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: h, Protocols: protocols}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	t.Cleanup(func() { close(h.ends); _ = server.Close(); <-served })
	return h, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	}
}

// A stop is not waited for longer than may be because the connection looks alive.
func TestAgentThatOnlyAnswersPings(t *testing.T) {
	t.Parallel() // it waits
	g := newScripted()
	agent, dial := newHanging(t, newTestServer(t, g, nil))
	conn, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(conn, client.Options{
		Redial: dial, PingEvery: 50 * time.Millisecond, AnswerWithin: 500 * time.Millisecond, SilentFor: 2 * time.Second, Zero: time.Now(),
	})
	defer c.Close()
	if _, err := c.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	sink := newCollector()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, workload(), sink) }()
	for range 3 {
		g.tick <- struct{}{}
	}
	sink.waitFor(t, 3)
	agent.hangs.Store(true)
	stop()
	if err := <-done; !errors.Is(err, load.ErrLost) || !strings.Contains(err.Error(), "silent for") {
		t.Fatalf("got %v", err)
	}
	if sink.count() < 3 {
		t.Error("what came before is gone")
	}
	agent.hangs.Store(false)
	waitUntil(t, func() bool {
		h, err := c.Health(t.Context())
		return err == nil && !h.Workloads[0].Running
	})
}

// A provider that knows that the VM has stopped ends all that waits for its agent, with what it says.
func TestAgentWhoseVMHasStopped(t *testing.T) {
	g := newScripted()
	n, c := newNetwork(t, newTestServer(t, g, nil), client.Options{Redial: func(context.Context) (net.Conn, error) {
		return nil, fmt.Errorf("%w: its system panicked", client.ErrGone)
	}})
	sink := newCollector()
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), workload(), sink) }()
	g.tick <- struct{}{}
	sink.waitFor(t, 1)
	n.set(true)
	if err := <-done; !errors.Is(err, load.ErrLost) || !strings.Contains(err.Error(), "its system panicked") {
		t.Fatalf("got %v", err)
	}
	select {
	case <-c.Lost():
	default:
		t.Error("the agent does not count as lost")
	}
	if _, err := c.Hello(t.Context()); !errors.Is(err, client.ErrGone) {
		t.Errorf("another call says %v", err)
	}
}
