package agent

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/stat"
)

func intervalHistogram(sequence int64) *stat.Histogram {
	h := &stat.Histogram{}
	for i := range uint64(200) {
		h.Record(50_000 + 997*i + uint64(sequence)*13)
	}
	return h
}

// network lets a test cut and restore the way to one server.
type network struct {
	t      *testing.T
	server *Server
	mu     sync.Mutex
	down   bool
	conns  []net.Conn
	dials  int
	served sync.WaitGroup
}

func (n *network) dial(context.Context) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials++
	if n.down {
		return nil, errors.New("no route")
	}
	near, far := net.Pipe()
	n.conns = append(n.conns, far)
	n.served.Go(func() { _ = n.server.ServeConn(context.Background(), far) })
	return near, nil
}

func (n *network) set(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
	if down {
		for _, c := range n.conns {
			_ = c.Close()
		}
		n.conns = nil
	}
}

func newNetwork(t *testing.T, s *Server, o client.Options) (*network, *client.Client) {
	t.Helper()
	n := &network{t: t, server: s}
	conn, err := n.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if o.Redial == nil {
		o.Redial = n.dial
	}
	c := client.New(conn, o)
	t.Cleanup(func() {
		_ = c.Close()
		n.set(true)
		n.served.Wait()
	})
	return n, c
}

// Fifteen minutes of intervals, made while the controller was away, arrive afterwards, each once and in order.
func TestCutOffForFifteenMinutes(t *testing.T) {
	g := newScripted()
	n, c := newNetwork(t, newTestServer(t, g, nil), client.Options{})
	sink := newCollector()
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), workload(), sink) }()
	for range 20 {
		g.tick <- struct{}{}
	}
	sink.waitFor(t, 20)
	n.set(true)
	const minutes15 = 900
	for range minutes15 {
		g.tick <- struct{}{}
	}
	close(g.tick)
	waitUntil(t, func() bool { return !n.server.health().Workloads[0].Running })
	n.set(false)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	sink.checkComplete(t, 20+minutes15+1)
}

// The connection breaks again and again, in the middle of lines too.
func TestFlappingConnection(t *testing.T) {
	g := newScripted()
	n, c := newNetwork(t, newTestServer(t, g, nil), client.Options{})
	sink := newCollector()
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), workload(), sink) }()
	const rounds = 20
	for round := range rounds {
		for range 25 {
			g.tick <- struct{}{}
		}
		sink.waitFor(t, round*25+1+round)
		n.set(true)
		n.set(false)
	}
	close(g.tick)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	sink.checkComplete(t, rounds*25+1)
	if n.dials < rounds {
		t.Errorf("only %d connections were made: nothing was tested", n.dials)
	}
}

func TestTooLongAwayIsTold(t *testing.T) {
	g := newScripted()
	n, c := newNetwork(t, newTestServer(t, g, func(o *Options) { o.BufferFor = time.Minute }), client.Options{})
	sink := newCollector()
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), workload(), sink) }()
	g.tick <- struct{}{}
	sink.waitFor(t, 1)
	n.set(true)
	for range bufferCountMin + 500 {
		g.tick <- struct{}{}
	}
	close(g.tick)
	waitUntil(t, func() bool { return !n.server.health().Workloads[0].Running })
	if got := n.server.health().Workloads[0]; got.Buffered > bufferCountMin || got.Discarded == 0 {
		t.Errorf("the buffer has no bound: %+v", got)
	}
	n.set(false)
	err := <-done
	if diag.ExitCode(err) != diag.ExitUndecided || !strings.Contains(err.Error(), "501 intervals were discarded") {
		t.Errorf("got %v", err)
	}
	if last := sink.got[len(sink.got)-1]; !last.Final || last.Sequence != bufferCountMin+501 {
		t.Errorf("the last interval is %d", last.Sequence)
	}
}

func TestRestartedAgentIsLost(t *testing.T) {
	g := newScripted()
	n, c := newNetwork(t, newTestServer(t, g, nil), client.Options{})
	sink := newCollector()
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), workload(), sink) }()
	g.tick <- struct{}{}
	sink.waitFor(t, 1)
	n.set(true)
	n.mu.Lock()
	n.server = newTestServer(t, g, nil)
	n.mu.Unlock()
	n.set(false)
	if err := <-done; !errors.Is(err, load.ErrLost) || !strings.Contains(err.Error(), "restarted") {
		t.Errorf("got %v", err)
	}
}

func TestGivesUpCalling(t *testing.T) {
	g := newScripted()
	n, c := newNetwork(t, newTestServer(t, g, nil), client.Options{RedialFor: 10 * time.Millisecond})
	sink := newCollector()
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), workload(), sink) }()
	g.tick <- struct{}{}
	sink.waitFor(t, 1)
	n.set(true)
	if err := <-done; !errors.Is(err, load.ErrLost) {
		t.Errorf("got %v", err)
	}
}

func waitUntil(t *testing.T, ok func() bool) {
	t.Helper()
	for range 20_000 {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the condition was not reached")
}
