package agent

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
)

// slowDial makes each attempt of a network wait until the test lets it go on, or its context ends.
type slowDial struct {
	*network
	begun, goOn chan struct{}
	underWay    atomic.Int64 // attempts
}

func (s *slowDial) dial(ctx context.Context) (net.Conn, error) {
	s.underWay.Add(1)
	defer s.underWay.Add(-1)
	s.begun <- struct{}{}
	select {
	case <-s.goOn:
		return s.network.dial(ctx)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func newSlowDial(t *testing.T) (*slowDial, *client.Client) {
	t.Helper()
	s := &slowDial{begun: make(chan struct{}, 100), goOn: make(chan struct{})}
	n, c := newNetwork(t, newTestServer(t, newScripted(), nil), client.Options{Redial: s.dial})
	s.network = n
	if _, err := c.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.set(true)
	n.set(false)
	waitUntil(t, func() bool { _, err := c.Metrics(t.Context()); return err != nil })
	return s, c
}

// Who has little time leaves; the attempt that he began goes on for who has more, and none of his spoil it.
func TestImpatientCallersDoNotEndADial(t *testing.T) {
	s, c := newSlowDial(t)
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := c.Health(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		cancel()
	}
	<-s.begun
	done := make(chan error, 1)
	go func() {
		_, err := c.Health(t.Context())
		done <- err
	}()
	s.goOn <- struct{}{}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(s.begun) > 0 || s.dials != 2 {
		t.Errorf("%d more attempts began, and %d connections were made", len(s.begun), s.dials)
	}
}

// Close ends an attempt that is no longer needed, and returns after it.
func TestCloseEndsADial(t *testing.T) {
	s, c := newSlowDial(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-s.begun; cancel() }()
	if _, err := c.Health(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	_ = c.Close()
	if s.underWay.Load() > 0 {
		t.Error("the attempt goes on")
	}
}

// Counters are polled every second: that must not be what calls an agent again.
func TestMetricsMakeNoConnection(t *testing.T) {
	s, c := newSlowDial(t)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if text, err := c.Metrics(ctx); err == nil {
			t.Errorf("counters without a connection: %s", text)
		}
		cancel()
	}
	if len(s.begun) > 0 {
		t.Errorf("%d attempts began", len(s.begun))
	}
	close(s.goOn)
	if _, err := c.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text, err := c.Metrics(t.Context()); err != nil || len(text) == 0 {
		t.Errorf("counters over the new connection: %q, %v", text, err)
	}
}
