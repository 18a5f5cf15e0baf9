package agent

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// clockedAgent is an agent with clocks of its own, reached over connections that can be cut.
type clockedAgent struct {
	generator *clocked
	network   *network
	client    *client.Client
}

func newClockedAgent(t *testing.T, zero time.Time, wall, uptime time.Duration) *clockedAgent {
	t.Helper()
	a := &clockedAgent{generator: &clocked{wall: func() time.Time { return time.Now().Add(wall) }, zero: zero}}
	s := newTestServer(t, a.generator, nil)
	s.wall = a.generator.wall
	s.uptime = func() time.Duration { return time.Since(s.started) + uptime }
	a.network, a.client = newNetwork(t, s, client.Options{Zero: zero})
	if _, err := a.client.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

// hold prepares a workload on every agent.
func hold(t *testing.T, agents []*clockedAgent) []load.Held {
	t.Helper()
	held := make([]load.Held, len(agents))
	var wait sync.WaitGroup
	for i, a := range agents {
		wait.Go(func() {
			var err error
			if held[i], err = a.client.Prepare(t.Context(), workload(), newCollector()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return held
}

// TestHeldWorkloadsStartAtOneMoment: agents whose clocks have nothing in common are prepared, and none starts before the moment that
// all had been notified.
func TestHeldWorkloadsStartAtOneMoment(t *testing.T) {
	zero := time.Now().Add(-time.Hour)
	var agents []*clockedAgent
	for _, off := range []time.Duration{0, -time.Hour, 365 * 24 * time.Hour, 7 * time.Second} {
		agents = append(agents, newClockedAgent(t, zero, off, off.Abs()/7+time.Hour))
	}
	held := hold(t, agents)
	for _, a := range agents {
		if n := len(a.generator.truth); n != 0 {
			t.Fatalf("an agent began without a start request")
		}
	}
	at := time.Now().Add(200 * time.Millisecond)
	planned := int64(at.Sub(zero))
	var wait sync.WaitGroup
	for i, h := range held {
		wait.Go(func() {
			uncertain := h.Timing().ClockError
			if err := h.Run(t.Context(), at); err != nil {
				t.Error(err)
			}
			late := time.Duration(agents[i].generator.truth[0] - planned)
			t.Logf("agent %d began %v behind the moment; its clock was known to ±%v", i, late, uncertain)
			if late < -uncertain-time.Millisecond {
				t.Errorf("agent %d began %v before the moment", i, -late)
			}
		})
	}
	wait.Wait()
}

// TestClockThatIsSetBetweenPreparationAndStart: the wall clock of a guest is often set right soon after its boot.
func TestClockThatIsSetBetweenPreparationAndStart(t *testing.T) {
	zero := time.Now().Add(-time.Minute)
	var mu sync.Mutex
	off := -3 * time.Hour
	a := newClockedAgent(t, zero, 0, time.Hour)
	a.generator.wall = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(off)
	}
	a.network.server.wall = a.generator.wall
	sink := newCollector()
	h, err := a.client.Prepare(t.Context(), workload(), sink)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	off = 0
	mu.Unlock()
	if err := h.Run(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	uncertain := h.Timing().ClockError
	for i, iv := range sink.got {
		if wrong := time.Duration(iv.StartNanos - a.generator.truth[i]).Abs(); wrong > uncertain+time.Millisecond {
			t.Errorf("interval %d is misplaced by %v", i, wrong)
		}
	}
}

// TestDiscardedWorkloadDoesNothing: what was prepared and never started leaves no interval and no task that runs.
func TestDiscardedWorkloadDoesNothing(t *testing.T) {
	a := newClockedAgent(t, time.Now(), 0, 0)
	hold(t, []*clockedAgent{a})[0].Discard()
	if len(a.generator.truth) != 0 {
		t.Error("it ran")
	}
	waitUntil(t, func() bool {
		for _, w := range a.network.server.health().Workloads {
			if w.Running {
				return false
			}
		}
		return true
	})
	ctx, cancel := context.WithCancel(t.Context())
	h, err := a.client.Prepare(ctx, workload(), newCollector())
	if err != nil {
		t.Fatal(err)
	}
	cancel() // while it waits
	if err := h.Run(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Errorf("got %v", err)
	}
	if _, err := a.client.Prepare(ctx, workload(), newCollector()); !errors.Is(err, context.Canceled) {
		t.Errorf("an abandoned preparation gives %v", err)
	}
}

// TestStartDuringAnOutage: the order to start finds its way when the network is back.
func TestStartDuringAnOutage(t *testing.T) {
	a := newClockedAgent(t, time.Now(), 0, 0)
	h := hold(t, []*clockedAgent{a})[0]
	a.network.set(true)
	done := make(chan error, 1)
	go func() { done <- h.Run(t.Context(), time.Now()) }()
	waitUntil(t, func() bool {
		a.network.mu.Lock()
		defer a.network.mu.Unlock()
		return a.network.dials > 2
	})
	if len(a.generator.truth) != 0 {
		t.Error("it started without a start request")
	}
	a.network.set(false)
	if err := <-done; err != nil || len(a.generator.truth) != 20 {
		t.Errorf("got %v after %d intervals", err, len(a.generator.truth))
	}
}

// TestCommandsAreIdempotent: asking again, as a controller does whose answer was lost, changes nothing.
func TestCommandsAreIdempotent(t *testing.T) {
	g := newScripted()
	s := newTestServer(t, g, nil)
	id := wire.NewID()
	call := func(method, path, body string) error { return ask(s, method, "/v1/workloads/"+id+path, body) }
	text := `{"name":"OLTP","group":"DB","vm":"DB-0001","generator":"scripted"}`
	for range 3 {
		if err := call(http.MethodPut, "?hold=1", text); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(g.prepared); n != 1 {
		t.Errorf("it was prepared %d times", n)
	}
	far := "/start?at_uptime_ns=3600000000000000"
	for _, path := range []string{far, "/start?at_uptime_ns=1", far} {
		if err := call(http.MethodPost, path, ""); err != nil {
			t.Fatal(err)
		}
	}
	g.tick <- struct{}{}
	time.Sleep(20 * time.Millisecond)
	if n := s.health().Workloads[0].Produced; n != 0 {
		t.Error("the second moment counted")
	}
	for range 3 {
		if err := call(http.MethodPost, "/stop", ""); err != nil {
			t.Fatal(err)
		}
	}
	waitUntil(t, func() bool { return !s.health().Workloads[0].Running })
	for range 3 {
		if err := call(http.MethodDelete, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	if h := s.health(); len(h.Workloads) != 0 {
		t.Errorf("left are %+v", h.Workloads)
	}
}

// TestPlacedOnTheRunsAxis: intervals of an agent whose wall clock is years off lie where they belong.
func TestPlacedOnTheRunsAxis(t *testing.T) {
	for name, off := range map[string]time.Duration{
		"same": 0, "an hour behind": -time.Hour, "a year ahead": 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			g := &clocked{wall: func() time.Time { return time.Now().Add(off) }, zero: time.Now().Add(-time.Minute)}
			s := newTestServer(t, g, nil)
			s.wall = g.wall
			s.uptime = func() time.Duration { return time.Since(s.started) + 77*time.Hour }
			n := &network{t: t, server: s}
			conn, err := n.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := client.New(conn, client.Options{Zero: g.zero, Redial: n.dial})
			t.Cleanup(func() {
				_ = c.Close()
				n.set(true)
				n.served.Wait()
			})
			if _, err := c.Hello(t.Context()); err != nil {
				t.Fatal(err)
			}
			w := workload()
			w.ZeroUnixNanos = 12345 // does not count
			sink := newCollector()
			if err := c.Run(t.Context(), w, sink); err != nil {
				t.Fatal(err)
			}
			another, err := c.Prepare(t.Context(), w, newCollector())
			if err != nil {
				t.Fatal(err)
			}
			uncertain := another.Timing().ClockError
			another.Discard()
			for k, iv := range sink.got {
				if wrong := time.Duration(iv.StartNanos - g.truth[k]).Abs(); wrong > uncertain+time.Millisecond {
					t.Errorf("interval %d is misplaced by %v, where clocks are known to %v", k, wrong, uncertain)
				}
			}
			if now, err := c.AskClock(t.Context()); err != nil || (now.Wall-off).Abs() > now.Error+time.Millisecond || now.Own.Abs() > time.Second {
				t.Errorf("the clock is %+v, %v", now, err)
			}
		})
	}
}

// clocked is a generator that reads its time as real ones do, from the wall clock of its machine at its start, and notes the truth.
type clocked struct {
	wall  func() time.Time
	zero  time.Time
	truth []int64    // starts on the run's axis
	split chan int64 // times at which intervals were to end, on the run's axis; may be nil
}

func (g *clocked) Plan(load.Workload) (load.Plan, error) { return load.Plan{}, nil }

func (g *clocked) Prepare(_ context.Context, w load.Workload) (load.Instance, error) {
	return &clockedRun{g: g, w: w}, nil
}

type clockedRun struct {
	g        *clocked
	w        load.Workload
	wasSplit atomic.Bool
}

func (r *clockedRun) Close() error { return nil }

func (r *clockedRun) Split(_ context.Context, at time.Time) error {
	if r.g.split == nil {
		return errors.New("cannot")
	}
	r.g.split <- int64(at.Sub(r.g.zero))
	r.wasSplit.Store(true)
	return nil
}

func (r *clockedRun) SetTime(zeroUnixNanos, startNanos int64) {
	r.w.ZeroUnixNanos, r.w.StartNanos = zeroUnixNanos, startNanos
}

func (r *clockedRun) Run(ctx context.Context, sink load.Sink) error {
	base := time.Now()
	axis := r.g.wall().UnixNano() - r.w.ZeroUnixNanos
	if r.w.StartNanos != 0 {
		time.Sleep(time.Duration(r.w.StartNanos - axis))
	}
	for i := range 20 {
		passed := time.Since(base)
		r.g.truth = append(r.g.truth, int64(base.Add(passed).Sub(r.g.zero)))
		iv := interval.Interval{Workload: r.w.Name, Group: r.w.Group, VM: r.w.VM, Instance: r.w.Instance, Sequence: int64(i), Final: i == 19}
		iv.StartNanos, iv.LengthNanos = axis+int64(passed), int64(time.Millisecond)
		for i == 19 && r.g.split != nil && !r.wasSplit.Load() && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		sink.Interval(iv)
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}

// TestIntervalsSplitAtOneMoment: agents whose clocks have nothing in common split the intervals of running loads at the same time.
func TestIntervalsSplitAtOneMoment(t *testing.T) {
	zero := time.Now().Add(-time.Hour)
	var agents []*clockedAgent
	for i, off := range []time.Duration{0, -time.Hour, 365 * 24 * time.Hour} {
		agents = append(agents, newClockedAgent(t, zero, off, off.Abs()/7+time.Hour))
		if i < 2 {
			agents[i].generator.split = make(chan int64, 1)
		}
	}
	for i, h := range hold(t, agents) {
		splitter := h.(load.Splitter)
		if err := splitter.Split(t.Context(), time.Now().Add(time.Second)); err == nil {
			t.Error("a load that does not run was split")
		}
		ended := make(chan error, 1)
		go func() { ended <- h.Run(t.Context(), time.Now()) }()
		at := time.Now().Add(time.Second)
		err := errors.New("not asked")
		for err != nil && len(ended) == 0 {
			if err = splitter.Split(t.Context(), at); i == 2 && err != nil && strings.Contains(err.Error(), "cannot") {
				break
			}
		}
		switch {
		case i == 2 && err == nil:
			t.Error("the split of a load that cannot do it had no error")
		case i < 2 && err != nil:
			t.Errorf("agent %d: %v", i, err)
		case i < 2:
			uncertain := h.Timing().ClockError + time.Millisecond
			if off := time.Duration(<-agents[i].generator.split - int64(at.Sub(zero))); off.Abs() > uncertain {
				t.Errorf("agent %d splits %v beside the time, its clock is known to %v", i, off, uncertain)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
