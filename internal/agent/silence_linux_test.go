package agent

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/load"
)

// An agent that is frozen while its load is stopped is given up after a while; its earlier intervals are kept. When it is
// back, it receives the stop.
func TestFrozenAgent(t *testing.T) {
	t.Parallel() // it waits
	if testing.Short() {
		t.Skip("waits for an agent that says nothing")
	}
	i := newIsland(t)
	t.Cleanup(func() { _ = i.agent.Process.Signal(syscall.SIGCONT) })
	cut := make(chan bool, 100)
	c := i.connect(t, client.Options{
		PingEvery: 200 * time.Millisecond, SilentFor: 3 * time.Second,
		Disconnected: func(back bool, _ time.Duration) { cut <- back },
	})
	w := workload()
	w.Generator, w.IntervalLength, w.Devices = "steady", 50*time.Millisecond, nil
	sink := newCollector()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, w, sink) }()
	sink.waitFor(t, 5)
	if err := i.agent.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if back := <-cut; back {
		t.Fatal("a frozen agent answers")
	}
	stop()
	err := <-done
	if !errors.Is(err, load.ErrLost) || !strings.Contains(err.Error(), "silent for") {
		t.Fatalf("got %v", err)
	}
	if n := sink.count(); n < 5 {
		t.Errorf("%d intervals are left of what came before", n)
	}
	if err := i.agent.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waitLong(t, func() bool {
		h, err := c.Health(t.Context())
		return err == nil && !h.Workloads[0].Running
	})
}

// A cut that begins while a load is being stopped, and is shorter than the patience, costs nothing.
func TestCutWhileStopping(t *testing.T) {
	t.Parallel() // it waits
	if testing.Short() {
		t.Skip("waits for an agent that says nothing")
	}
	i := newIsland(t)
	// Were the silence counted as the agent's own time, it would be given up.
	c := i.connect(t, client.Options{PingEvery: 200 * time.Millisecond, StopWithin: time.Second})
	w := workload()
	w.Generator, w.IntervalLength, w.Devices = "steady", 50*time.Millisecond, nil
	sink := newCollector()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, w, sink) }()
	sink.waitFor(t, 5)
	repair := cuts["agent is not heard"](i, t)
	stop()
	time.Sleep(4 * time.Second)
	select {
	case err := <-done:
		t.Fatalf("ended during the cut: %v", err)
	default:
	}
	repair()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	sink.checkComplete(t, sink.count())
}
