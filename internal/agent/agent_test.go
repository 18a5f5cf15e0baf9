package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/testreq"
)

// TestMain is also the program of the agents that tests start as processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "__hold" { // a network namespace, until the test closes our input
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "__agent" {
		stuck := newScripted()
		stuck.stuck = make(chan struct{})
		os.Exit(Command(context.Background(), os.Args[2:], Program{
			Generators: map[string]load.Generator{"stuck": stuck, "steady": steady{}}, Version: "1.2.3", Stderr: os.Stderr,
		}))
	}
	testreq.Waiting(16)
	goleak.VerifyTestMain(m)
}

// scripted is a generator whose run is driven by the test: every number sent on tick makes one interval.
type scripted struct {
	tick       chan struct{} // one interval each; closed: the load is complete
	prepareErr error
	hesitate   bool // Prepare waits for its context
	runErr     error
	stuck      chan struct{} // when set, Run does not end before it is closed
	skip       int64         // leaves out this sequence number: a broken generator
	prepared   chan load.Workload
	outputs    []load.Output
}

func newScripted() *scripted {
	return &scripted{tick: make(chan struct{}, 4096), prepared: make(chan load.Workload, 100), skip: -1}
}

func (g *scripted) Plan(load.Workload) (load.Plan, error) { return load.Plan{}, nil }

func (g *scripted) Prepare(ctx context.Context, w load.Workload) (load.Instance, error) {
	if g.hesitate {
		g.prepared <- w
		<-ctx.Done()
		return nil, fmt.Errorf("prepare: %w", ctx.Err())
	}
	if g.prepareErr != nil {
		return nil, g.prepareErr
	}
	g.prepared <- w
	return &scriptedRun{g, w}, nil
}

type scriptedRun struct {
	g *scripted
	w load.Workload
}

func (r *scriptedRun) Outputs() []load.Output { return r.g.outputs }

func (r *scriptedRun) Close() error { return nil }

func (r *scriptedRun) Engine() interval.Engine { return interval.Engine{Name: "scripted, from cards"} }

func (r *scriptedRun) Run(ctx context.Context, sink load.Sink) error {
	sequence := int64(0)
	deliver := func(final bool) {
		if sequence == r.g.skip {
			sequence++
		}
		sink.Interval(intervalOf(r.w, sequence, final))
		sequence++
	}
	for {
		select {
		case _, more := <-r.g.tick:
			if !more {
				deliver(true)
				return r.g.runErr
			}
			deliver(false)
		case <-ctx.Done():
			if r.g.stuck != nil {
				<-r.g.stuck
			}
			deliver(true)
			return nil
		}
	}
}

// steady makes an interval in each period, as real generators do, and nothing else.
type steady struct{}

func (steady) Plan(load.Workload) (load.Plan, error) { return load.Plan{}, nil }

func (steady) Prepare(_ context.Context, w load.Workload) (load.Instance, error) {
	return steadyRun{w}, nil
}

type steadyRun struct{ w load.Workload }

func (steadyRun) Close() error { return nil }

func (r steadyRun) Run(ctx context.Context, sink load.Sink) error {
	tick := time.NewTicker(r.w.IntervalLength)
	defer tick.Stop()
	for sequence := int64(0); ; sequence++ {
		select {
		case <-tick.C:
			sink.Interval(intervalOf(r.w, sequence, false))
		case <-ctx.Done():
			sink.Interval(intervalOf(r.w, sequence, true))
			return nil
		}
	}
}

func intervalOf(w load.Workload, sequence int64, final bool) interval.Interval {
	iv := interval.Interval{
		Workload: w.Name, Group: w.Group, VM: w.VM, Instance: w.Instance, Sequence: sequence,
		StartNanos: sequence * 1e9, LengthNanos: 1e9, Final: final,
	}
	histogram := intervalHistogram(sequence)
	iv.Directions[interval.Read] = interval.Traffic{Operations: 10, Bytes: 40960, Service: histogram}
	iv.Directions[interval.Write] = interval.Traffic{Errors: map[string]uint64{"EIO": 1}}
	return iv
}

func workload() load.Workload {
	return load.Workload{
		Name: "OLTP", Group: "DB", VM: "DB-0001", Instance: 1, Generator: "scripted", ZeroUnixNanos: 1e18,
		Devices: []load.Device{{Name: "/dev/sdb", Path: "disk", SizeBytes: 1 << 20}},
	}
}

// pair is a server and a client over one connection in memory.
type pair struct {
	server *Server
	client *client.Client
	cut    func() // ends the connection without a word
	done   chan struct{}
}

func connect(t *testing.T, s *Server, o client.Options) *pair {
	t.Helper()
	near, far := net.Pipe()
	p := &pair{server: s, client: client.New(near, o), done: make(chan struct{}), cut: func() { _ = far.Close() }}
	go func() {
		defer close(p.done)
		_ = s.ServeConn(context.Background(), far)
	}()
	t.Cleanup(func() {
		if err := p.client.Close(); err != nil {
			t.Errorf("close client: %v", err)
		}
		<-p.done
	})
	return p
}

func newTestServer(t *testing.T, g load.Generator, change func(*Options)) *Server {
	t.Helper()
	o := Options{Generators: map[string]load.Generator{"scripted": g}, VM: "DB-0001", Version: "1.2.3"}
	if change != nil {
		change(&o)
	}
	s := NewServer(o)
	t.Cleanup(s.Close)
	return s
}

// collector is a sink that remembers.
type collector struct {
	mu  sync.Mutex
	got []interval.Interval
	n   chan int // receives the number so far after each interval
}

func newCollector() *collector { return &collector{n: make(chan int, 100_000)} }

func (c *collector) Interval(iv interval.Interval) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, iv)
	c.n <- len(c.got)
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.got)
}

func (c *collector) waitFor(t *testing.T, n int) {
	t.Helper()
	hang := time.After(20 * time.Second)
	for {
		select {
		case have := <-c.n:
			if have >= n {
				return
			}
		case <-hang:
			t.Fatalf("%d intervals did not arrive", n)
		}
	}
}

// checkComplete fails unless got is exactly 0, 1, … n-1 with their content and the last one final.
func (c *collector) checkComplete(t *testing.T, n int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.got) != n {
		t.Fatalf("received %d intervals, want %d", len(c.got), n)
	}
	for i, iv := range c.got {
		if iv.Sequence != int64(i) || iv.Final != (i == n-1) {
			t.Fatalf("interval %d has sequence %d, final %v", i, iv.Sequence, iv.Final)
		}
		want := intervalHistogram(int64(i))
		if got := iv.Directions[interval.Read].Service; got.Quantile(0.99) != want.Quantile(0.99) || got.Count() != want.Count() {
			t.Fatalf("interval %d lost its histogram", i)
		}
	}
}

func TestRunToCompletion(t *testing.T) {
	g := newScripted()
	engine := ""
	p := connect(t, newTestServer(t, g, nil), client.Options{Started: func(_ load.Workload, e interval.Engine) { engine = e.String() }})
	for range 99 {
		g.tick <- struct{}{}
	}
	close(g.tick)
	sink := newCollector()
	if err := p.client.Run(t.Context(), workload(), sink); err != nil {
		t.Fatal(err)
	}
	sink.checkComplete(t, 100)
	got := <-g.prepared
	want := workload()
	if got.Name != want.Name || got.ZeroUnixNanos != want.ZeroUnixNanos || !reflect.DeepEqual(got.Devices, want.Devices) {
		t.Errorf("the generator was given %+v", got)
	}
	if engine != "scripted, from cards" {
		t.Errorf("the engine is %q", engine)
	}
	h, err := p.client.Health(t.Context())
	if err != nil || len(h.Workloads) != 0 || h.BufferedBytes != 0 {
		t.Errorf("after the run the agent still holds %+v, %v", h, err)
	}
}

// What programs of a load wrote comes with its end, even if the load failed; what could not be stored is left out.
func TestOutputsOfPrograms(t *testing.T) {
	g := newScripted()
	g.runErr = errors.New("scripted failure")
	g.outputs = []load.Output{{Name: "bench.txt", Text: "tps = 1"}, {Name: "../escape", Text: "x"},
		{Name: "long.txt", Text: strings.Repeat("x", load.OutputBytesMax+1)}}
	var got []load.Output
	p := connect(t, newTestServer(t, g, nil), client.Options{Ended: func(w load.Workload, list []load.Output) {
		if got = list; w.Name != workload().Name {
			t.Errorf("outputs of workload %q", w.Name)
		}
	}})
	close(g.tick)
	if err := p.client.Run(t.Context(), workload(), newCollector()); err == nil {
		t.Error("the load did not fail")
	}
	if !reflect.DeepEqual(got, g.outputs[:1]) {
		t.Errorf("outputs: %+v", got)
	}
}

func TestCancelStopsAndDeliversTheRest(t *testing.T) {
	g := newScripted()
	p := connect(t, newTestServer(t, g, nil), client.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	sink := newCollector()
	done := make(chan error, 1)
	go func() { done <- p.client.Run(ctx, workload(), sink) }()
	g.tick <- struct{}{}
	sink.waitFor(t, 1)
	cancel()
	if err := <-done; err != nil {
		t.Fatalf("a cancelled run must not be an error, got %v", err)
	}
	sink.checkComplete(t, 2)
}

func TestCancelBeforeStart(t *testing.T) {
	g := newScripted()
	p := connect(t, newTestServer(t, g, nil), client.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.client.Run(ctx, workload(), newCollector()); err != nil {
		t.Fatal(err)
	}
}

func TestCancelWhilePreparing(t *testing.T) {
	g := newScripted()
	g.hesitate = true
	p := connect(t, newTestServer(t, g, nil), client.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.client.Run(ctx, workload(), newCollector()) }()
	<-g.prepared
	cancel()
	if err := <-done; err != nil {
		t.Errorf("a cancelled run must not be an error, got %v", err)
	}
}

// A VM may run for hours before anybody speaks with it, and be silent for hours between two workloads.
func TestSilenceIsNoReasonToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newScripted()
		p := connect(t, newTestServer(t, g, nil), client.Options{})
		time.Sleep(24 * time.Hour)
		if _, err := p.client.Hello(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		sink := newCollector()
		done := make(chan error, 1)
		go func() { done <- p.client.Run(t.Context(), workload(), sink) }()
		<-g.prepared
		time.Sleep(24 * time.Hour) // a load that has nothing to say
		g.tick <- struct{}{}
		time.Sleep(24 * time.Hour)
		close(g.tick)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		sink.checkComplete(t, 2)
	})
}

func TestLoadThatDoesNotStop(t *testing.T) {
	g := newScripted()
	g.stuck = make(chan struct{})
	s := newTestServer(t, g, nil)
	p := connect(t, s, client.Options{StopWithin: 20 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.client.Run(ctx, workload(), newCollector()) }()
	<-g.prepared
	cancel()
	if err := <-done; !errors.Is(err, load.ErrLost) || !strings.Contains(err.Error(), "did not stop") {
		t.Errorf("got %v", err)
	}
	close(g.stuck)
}

func TestErrorsKeepTheirMeaning(t *testing.T) {
	told := &diag.Error{Code: "option-missing", Message: `option "zonemode" is missing`, Hint: "--engine fio", Exit: diag.ExitData}
	var list diag.List
	list.Errorf(diag.Position{File: "a.fio", Line: 3}, "unknown", "unknown option %q", "x")
	for name, tt := range map[string]struct {
		prepare, run error
		exit         int
		contains     string
	}{
		"prepare":   {prepare: told, exit: diag.ExitData, contains: "zonemode"},
		"list":      {prepare: list.Err(), exit: diag.ExitData, contains: "a.fio:3"},
		"run":       {run: told, exit: diag.ExitData, contains: "zonemode"},
		"plain run": {run: errors.New("device went away"), exit: diag.ExitInternal, contains: "device went away"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newScripted()
			g.prepareErr, g.runErr = tt.prepare, tt.run
			close(g.tick)
			p := connect(t, newTestServer(t, g, nil), client.Options{})
			err := p.client.Run(t.Context(), workload(), newCollector())
			if err == nil || diag.ExitCode(err) != tt.exit || !strings.Contains(err.Error(), tt.contains) {
				t.Fatalf("got %v with exit code %d", err, diag.ExitCode(err))
			}
			if errors.Is(err, load.ErrLost) {
				t.Error("an error of the load is not a lost agent")
			}
			var d *diag.Error
			if name != "list" && name != "plain run" && (!errors.As(err, &d) || d.Hint != told.Hint || d.Code != told.Code) {
				t.Errorf("code or hint got lost: %v", err)
			}
		})
	}
}

func TestLostConnectionIsErrLost(t *testing.T) {
	g := newScripted()
	p := connect(t, newTestServer(t, g, nil), client.Options{})
	sink := newCollector()
	done := make(chan error, 1)
	go func() { done <- p.client.Run(t.Context(), workload(), sink) }()
	g.tick <- struct{}{}
	sink.waitFor(t, 1)
	p.cut()
	if err := <-done; !errors.Is(err, load.ErrLost) {
		t.Fatalf("got %v", err)
	}
	<-p.client.Lost()
	if _, err := p.client.Hello(t.Context()); !errors.Is(err, load.ErrLost) {
		t.Errorf("greeting a lost agent: %v", err)
	}
	if err := p.client.Run(t.Context(), workload(), sink); !errors.Is(err, load.ErrLost) {
		t.Errorf("running on a lost agent: %v", err)
	}
}

func TestSeveralWorkloadsAtOnce(t *testing.T) {
	g := newScripted()
	p := connect(t, newTestServer(t, g, nil), client.Options{})
	close(g.tick)
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			sink := newCollector()
			if err := p.client.Run(t.Context(), workload(), sink); err != nil {
				t.Error(err)
			}
			sink.checkComplete(t, 1)
		})
	}
	all.Wait()
}

func TestHello(t *testing.T) {
	p := connect(t, newTestServer(t, newScripted(), func(o *Options) { o.MetricsAddress = "127.0.0.1:9100" }), client.Options{})
	h, err := p.client.Hello(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if h.VM != "DB-0001" || h.Version != "1.2.3" || h.PID == 0 || !slices.Equal(h.Generators, []string{"scripted"}) ||
		h.MetricsAddress != "127.0.0.1:9100" {
		t.Errorf("got %+v", h)
	}
}

func TestForeignDeviceIsRefused(t *testing.T) {
	own := load.Device{Name: "/dev/sdb", Path: "disk", SizeBytes: 1 << 20}
	p := connect(t, newTestServer(t, newScripted(), func(o *Options) { o.Devices = []load.Device{own} }), client.Options{})
	for _, foreign := range []load.Device{
		{Name: "/dev/sdb", Path: "/dev/sda", SizeBytes: 1}, {Name: "/dev/sdc", Path: "disk", SizeBytes: 1},
		{Name: "/dev/sdb", Path: "disk", SizeBytes: 2 << 20},
	} {
		w := workload()
		w.Devices = []load.Device{own, foreign}
		if err := p.client.Run(t.Context(), w, newCollector()); diag.ExitCode(err) != diag.ExitRefused {
			t.Errorf("%+v: got %v", foreign, err)
		}
	}
}

func TestStaleFenceIsRefused(t *testing.T) {
	g := newScripted()
	close(g.tick)
	s := newTestServer(t, g, nil)
	old, young := connect(t, s, client.Options{Fence: 4}), connect(t, s, client.Options{Fence: 5})
	for _, p := range []*pair{old, young} {
		if err := p.client.Run(t.Context(), workload(), newCollector()); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.client.Run(t.Context(), workload(), newCollector()); diag.ExitCode(err) != diag.ExitLocked {
		t.Errorf("got %v", err)
	}
}

func TestBrokenGeneratorIsNamed(t *testing.T) {
	g := newScripted()
	g.skip = 1
	for range 10 {
		g.tick <- struct{}{}
	}
	p := connect(t, newTestServer(t, g, nil), client.Options{})
	err := p.client.Run(t.Context(), workload(), newCollector())
	if diag.ExitCode(err) != diag.ExitInternal || !strings.Contains(err.Error(), "broke its contract") {
		t.Errorf("got %v", err)
	}
}
