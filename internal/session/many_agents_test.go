package session

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/agent/pool"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/result/resulttest"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/trust"
)

// Load of many agents on one controller: the real clients, connections, record and metric store of a run, against agents
// that are simulated in another process of this machine. Only their load is simulated, which does nothing; their protocol
// and data are those of real agents.

// AgentsVariable makes this program the agents of a test; it holds nothing else.
const AgentsVariable = "BRAGG_TEST_AGENTS"

// benchmarkVariables: "make bench-agents" sets them.
const (
	agentsCountVariable = "BRAGG_BENCH_AGENTS"
	agentsForVariable   = "BRAGG_BENCH_AGENTS_FOR"
	// agentsStoreVariable is the base URL of a Prometheus or VictoriaMetrics that all samples are also written to; it has to be empty
	// before. agentsProfileVariable is a file for the CPU profile of the time in which intervals arrive.
	agentsStoreVariable   = "BRAGG_BENCH_AGENTS_STORE"
	agentsProfileVariable = "BRAGG_BENCH_AGENTS_PROFILE"
	// agentsEveryVariable stretches the time between the intervals of an agent, where the machine is too small for one a second.
	agentsEveryVariable = "BRAGG_BENCH_AGENTS_EVERY"
)

// agentsOfProcess bounds the agents of one process: each has two descriptors.
const agentsOfProcess = 2500

// simulatedAgent is one agent of the other process.
type simulatedAgent struct {
	VM    string
	Files trust.Files
}

// ServeSimulatedAgents is the other process: it reads its identity, reports where each agent listens, and ends with its
// input.
func ServeSimulatedAgents() {
	in := json.NewDecoder(os.Stdin)
	var list []simulatedAgent
	if err := in.Decode(&list); err != nil {
		panic(err)
	}
	generator := newSimulatedLoad()
	if text := os.Getenv(agentsEveryVariable); text != "" {
		var err error
		if generator.every, err = time.ParseDuration(text); err != nil {
			panic(err)
		}
	}
	var addresses []string
	for _, a := range list {
		settings, err := trust.Server(a.Files)
		if err != nil {
			panic(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		addresses = append(addresses, l.Addr().String())
		s := agent.NewServer(agent.Options{Generators: map[string]load.Generator{"simulated": generator}, VM: a.VM})
		go func() {
			if err := s.ServeTLS(context.Background(), l, settings); err != nil {
				panic(err)
			}
		}()
	}
	if err := json.NewEncoder(os.Stdout).Encode(addresses); err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// simulatedLoad makes an interval with four histograms at each whole second of the run's axis, as generators do.
type simulatedLoad struct {
	seconds []interval.Interval
	every   time.Duration
}

func newSimulatedLoad() *simulatedLoad {
	const variants, operations = 512, 500
	g := &simulatedLoad{every: time.Second}
	random := rand.New(rand.NewPCG(1, 2))
	for range variants {
		iv := interval.Interval{Due: 2 * operations, CPUNanos: 1e7, InFlight: 8}
		for _, d := range []interval.Direction{interval.Read, interval.Write} {
			t := &iv.Directions[d]
			t.Operations, t.Bytes, t.Service, t.Response = operations, operations*8192, &stat.Histogram{}, &stat.Histogram{}
			for range operations {
				v := uint64(4e5 * random.ExpFloat64() * (1 + random.ExpFloat64()))
				t.Service.Record(v)
				t.Response.Record(v + uint64(5e4*random.ExpFloat64()))
			}
		}
		g.seconds = append(g.seconds, iv)
	}
	return g
}

func (g *simulatedLoad) Plan(load.Workload) (load.Plan, error) { return load.Plan{}, nil }

func (g *simulatedLoad) Prepare(_ context.Context, w load.Workload) (load.Instance, error) {
	return &simulatedRun{g, w}, nil
}

type simulatedRun struct {
	g *simulatedLoad
	w load.Workload
}

func (r *simulatedRun) Close() error { return nil }

func (r *simulatedRun) SetTime(zeroUnixNanos, startNanos int64) {
	r.w.ZeroUnixNanos, r.w.StartNanos = zeroUnixNanos, startNanos
}

func (r *simulatedRun) Run(ctx context.Context, sink load.Sink) error {
	base := time.Now()
	offset := base.UnixNano() - r.w.ZeroUnixNanos
	now := func() int64 { return offset + int64(time.Since(base)) }
	at := max(now(), r.w.StartNanos)
	for sequence := int64(0); ; sequence++ {
		end := at - at%int64(r.g.every) + int64(r.g.every)
		final := false
		select {
		case <-time.After(time.Duration(end - now())):
		case <-ctx.Done():
			final, end = true, max(at, now())
		}
		iv := r.g.seconds[(int(sequence)+r.w.Ordinal)%len(r.g.seconds)]
		iv.Workload, iv.Group, iv.VM, iv.Instance, iv.Sequence, iv.Final = r.w.Name, r.w.Group, r.w.VM, r.w.Instance, sequence, final
		iv.StartNanos, iv.LengthNanos = at, end-at
		sink.Interval(iv)
		if at = end; final {
			return nil
		}
	}
}

// simulatedTarget reaches the agents of the other process.
type simulatedTarget struct {
	target.Target
	authority *trust.Authority
	addresses map[string]string
	received  atomic.Int64 // bytes from agents, as they are on the wire
}

// countedConn counts what is received.
type countedConn struct {
	net.Conn
	received *atomic.Int64
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

func (s *simulatedTarget) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addresses[vm.Name])
	if err != nil {
		return nil, err
	}
	secure := tls.Client(countedConn{conn, &s.received}, s.authority.Controller(vm.Name))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// simulate starts the processes with the agents of vms.
func simulate(t *testing.T, vms []target.VM) (*simulatedTarget, []*exec.Cmd) {
	t.Helper()
	authority, err := trust.New("run-1", 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s := &simulatedTarget{authority: authority, addresses: map[string]string{}}
	var processes []*exec.Cmd
	for some := range slices.Chunk(vms, agentsOfProcess) {
		processes = append(processes, s.start(t, some))
	}
	return s, processes
}

// start starts one process with agents.
func (s *simulatedTarget) start(t *testing.T, vms []target.VM) *exec.Cmd {
	t.Helper()
	var list []simulatedAgent
	for _, vm := range vms {
		files, err := s.authority.Agent(vm.Name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, simulatedAgent{vm.Name, files})
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), AgentsVariable+"=1"), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if err := json.NewEncoder(in).Encode(list); err != nil {
		t.Fatal(err)
	}
	var addresses []string
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&addresses); err != nil {
		t.Fatal(err)
	}
	for i, vm := range vms {
		s.addresses[vm.Name] = addresses[i]
	}
	return cmd
}

// lagSink measures how long after its end an interval was recorded.
type lagSink struct {
	record *recorder
	mu     sync.Mutex
	lag    stat.Histogram // nanoseconds, since the last look
	count  int
	seen   map[string]int64 // by VM: the sequence that comes next
	wrong  int
	total  int    // intervals
	ops    uint64 // operations
}

func (s *lagSink) Interval(iv interval.Interval) {
	vm, sequence, end := iv.VM, iv.Sequence, iv.EndNanos()
	operations := iv.Directions[interval.Read].Operations + iv.Directions[interval.Write].Operations
	s.record.Interval(iv)
	now := s.record.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag.Record(uint64(max(0, now-end)))
	s.count++
	s.total++
	s.ops += operations
	if s.seen[vm] != sequence {
		s.wrong++
	}
	s.seen[vm] = sequence + 1
}

// look returns the measurements since the last call.
func (s *lagSink) look() (lag stat.Histogram, count, wrong int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lag, count, wrong = *s.lag.Clone(), s.count, s.wrong
	s.lag.Reset()
	s.count = 0
	return lag, count, wrong
}

// recordingObserver is observer without a plan and an engine.
type recordingObserver struct {
	*recorder
	*exporters
}

func (*recordingObserver) Prepared(load.Workload, interval.Engine) {}

func (*recordingObserver) PowerCuts(string) int { return 0 }

// manyAgents is a controller with its agents.
type manyAgents struct {
	t        *testing.T
	vms      []target.VM
	dir      string // of the bundle
	record   *recorder
	observer *recordingObserver
	agents   *pool.Pool
	sink     *lagSink
	dialer   *simulatedTarget
	simulate []*exec.Cmd
	remote   *metric.Remote // nil: none
	idle     cost           // before the first agent
	begun    time.Time
	close    func()
}

func newManyAgents(t *testing.T, count int, store string) *manyAgents {
	t.Helper()
	m := &manyAgents{t: t, dir: filepath.Join(t.TempDir(), "run")}
	for i := range count {
		m.vms = append(m.vms, target.VM{Name: fmt.Sprintf("many-%05d", i+1), Group: "many", Ordinal: i, NodeID: "node-1", Power: target.PowerOn})
	}
	m.dialer, m.simulate = simulate(t, m.vms)
	m.idle, m.begun = costOf(os.Getpid()), time.Now()
	manifest := resulttest.Manifest(resulttest.Params{VMs: 1, Duration: time.Second})
	manifest.Created = time.Now()
	w, err := result.Create(m.dir, manifest)
	if err != nil {
		t.Fatal(err)
	}
	if store != "" {
		// Native histograms are one point each; VictoriaMetrics stores a series for each bucket of them.
		if m.remote, err = metric.StartRemote(metric.RemoteOptions{URL: store + "/api/v1/write", Quantiles: true}); err != nil {
			t.Fatal(err)
		}
	}
	m.record = &recorder{zero: manifest.Created, manifest: manifest, writer: w, secrets: &secrets{}, cache: newCache()}
	m.record.cache.start(filepath.Join(m.dir, metric.Dir), manifest, m.remote)
	m.observer = &recordingObserver{m.record, newExporters(&plan.Plan{}, nil, nil, m.record)}
	m.observer.scraper.Interval = scrapePeriod // of runs that take longer than a quarter of an hour
	m.agents = pool.New(m.dialer, pool.Options{Fence: 1, Zero: m.record.zero, SilentFor: silentForRun, Observer: m.observer})
	m.sink = &lagSink{record: m.record, seen: map[string]int64{}}
	m.close = sync.OnceFunc(m.end)
	t.Cleanup(m.close)
	return m
}

// end closes everything but the remote store.
func (m *manyAgents) end() {
	m.agents.Close()
	if db := m.record.cache.take(); db == nil {
		m.t.Error("the metric store gave up")
	} else if err := db.Close(); err != nil {
		m.t.Error(err)
	}
	if err := errors.Join(m.record.writer.Err(), m.record.writer.Close()); err != nil {
		m.t.Error(err)
	}
}

// check expects that nothing is missing in the bundle, and in the remote store.
func (m *manyAgents) check(store string) {
	m.close()
	intervals, operations, size := m.bundle()
	if intervals != m.sink.total || operations != m.sink.ops {
		m.t.Errorf("the bundle has %d intervals with %d operations, received were %d with %d", intervals, operations, m.sink.total, m.sink.ops)
	}
	m.t.Logf("bundle: %d intervals, %d operations, %.0f bytes for each interval", intervals, operations, float64(size)/float64(max(1, intervals)))
	if m.remote == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sent, dropped, why := m.remote.Close(ctx)
	m.t.Logf("remote store: %d values sent, %d dropped (%v), %.1f for each interval", sent, dropped, why, float64(sent+dropped)/float64(max(1, intervals)))
	m.checkStore(store, sent, dropped, operations)
}

// bundle reads what the bundle has of the load, and how large the files with it are.
func (m *manyAgents) bundle() (intervals int, operations uint64, bytes int64) {
	files, err := filepath.Glob(filepath.Join(m.dir, "intervals*"))
	if err != nil {
		m.t.Error(err)
	}
	for _, path := range files {
		if info, err := os.Stat(path); err == nil {
			bytes += info.Size()
		}
	}
	b, err := result.Open(m.dir)
	if err != nil {
		m.t.Error(err)
		return
	}
	for iv, err := range b.Intervals() {
		if err != nil {
			m.t.Error(err)
			break
		}
		intervals++
		operations += iv.Directions[interval.Read].Operations + iv.Directions[interval.Write].Operations
	}
	return intervals, operations, bytes
}

// checkStore compares what the remote store has with what was sent, and with the bundle.
func (m *manyAgents) checkStore(store string, sent, dropped, operations uint64) {
	// Queries do not count the staleness markers with which the gauges of a load end.
	const gauges = 2 // backlog and in flight
	sent -= min(sent, uint64(gauges*len(m.vms)))
	var values, counted float64
	for deadline := time.Now().Add(storeVisibleMax); ; time.Sleep(time.Second) {
		values = m.query(store, `sum(count_over_time({run!=""}[1d]))`)
		counted = m.query(store, `sum(max_over_time(bragg_operations_total[1d]))`)
		if values == float64(sent) && counted == float64(operations) || dropped > 0 || time.Now().After(deadline) || m.t.Failed() {
			break
		}
	}
	m.t.Logf("remote store: has %.0f values without staleness markers, %.0f operations", values, counted)
	if dropped == 0 && (values != float64(sent) || counted != float64(operations)) {
		m.t.Errorf("the store has %.0f of %d values, and %.0f of %d operations", values, sent, counted, operations)
	}
}

// storeVisibleMax is how long a store may take until queries see what it has accepted.
const storeVisibleMax = 30 * time.Second

func (m *manyAgents) query(store, text string) float64 {
	response, err := http.Get(store + "/api/v1/query?" + url.Values{"query": {text}, "time": {strconv.FormatInt(time.Now().Add(time.Second).Unix(), 10)}}.Encode())
	if err != nil {
		m.t.Error(err)
		return 0
	}
	defer response.Body.Close()
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || len(answer.Data.Result) != 1 {
		m.t.Errorf("%s: %+v, %v", text, answer, err)
		return 0
	}
	value, _ := answer.Data.Result[0].Value[1].(string)
	number, err := strconv.ParseFloat(value, 64)
	if err != nil {
		m.t.Error(err)
	}
	return number
}

// start prepares the load on all agents and starts it on all at the same time.
func (m *manyAgents) start(ctx context.Context, ended *sync.WaitGroup) {
	held := make([]load.Held, len(m.vms))
	var wait sync.WaitGroup
	slots := make(chan struct{}, 32)
	for i, vm := range m.vms {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			client, err := m.agents.Client(ctx, vm)
			if err == nil {
				held[i], err = client.Prepare(ctx, load.Workload{Name: "w", Group: vm.Group, VM: vm.Name, Ordinal: i, Instance: 1, Generator: "simulated"}, m.sink)
			}
			if err != nil {
				m.t.Error(err)
			}
		})
	}
	wait.Wait()
	if m.t.Failed() {
		m.t.FailNow()
	}
	at := time.Now().Add(time.Second)
	for _, h := range held {
		ended.Go(func() {
			if err := h.Run(ctx, at); err != nil {
				m.t.Error(err)
			}
		})
	}
}

// cost is the resource usage of a process so far.
type cost struct {
	cpu         time.Duration
	resident    int64
	descriptors int
}

func costOf(pid int) (c cost) {
	folder := "/proc/" + strconv.Itoa(pid)
	text, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return c
	}
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	open, _ := os.ReadDir(folder + "/fd")
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every platform of Linux that we build for
	return cost{time.Duration(user+system) * tick, pages * int64(os.Getpagesize()), len(open)}
}

// agentsCost is that of all processes with agents.
func (m *manyAgents) agentsCost() (all cost) {
	for _, p := range m.simulate {
		one := costOf(p.Process.Pid)
		all.cpu += one.cpu
		all.resident += one.resident
	}
	return all
}

// TestManyAgents is the benchmark; with few agents and a short duration, it is the test of the benchmark.
func TestManyAgents(t *testing.T) {
	count, lasts := 20, 4*time.Second
	if text := os.Getenv(agentsCountVariable); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		if lasts, err = time.ParseDuration(os.Getenv(agentsForVariable)); err != nil {
			t.Fatal(err)
		}
	}
	store := os.Getenv(agentsStoreVariable)
	m := newManyAgents(t, count, store)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var ended sync.WaitGroup
	m.start(ctx, &ended)
	if t.Failed() {
		return
	}
	started := costOf(os.Getpid())
	m.t.Logf("start: %d agents greeted and prepared in %v, %.1f ms of CPU and %.0f KiB for each, %d descriptors, %d goroutines", count,
		time.Since(m.begun).Round(time.Millisecond), float64(started.cpu-m.idle.cpu)/1e6/float64(count), float64(started.resident-m.idle.resident)/1024/float64(count),
		started.descriptors, runtime.NumGoroutine())
	if path := os.Getenv(agentsProfileVariable); path != "" {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			t.Fatal(err)
		}
		defer pprof.StopCPUProfile()
	}
	ended.Go(func() { m.observer.scraper.Run(ctx) }) // as in a run
	m.watch(lasts)
	stop()
	ended.Wait()
	_, _, wrong := m.sink.look()
	if wrong > 0 || len(m.sink.seen) != count {
		t.Errorf("%d intervals out of turn, %d agents of %d were heard", wrong, len(m.sink.seen), count)
	}
	m.check(store)
}

// watch prints the progress, at increasing intervals. Costs of an interval include that of greetings and clocks. They do not depend on
// other users of the machine, as lags do.
func (m *manyAgents) watch(lasts time.Duration) {
	began, total := time.Now(), 0
	before, agentsBefore, wireBefore := costOf(os.Getpid()), m.agentsCost(), m.dialer.received.Load()
	m.t.Logf("%d agents, simulated; %d cores, shared by controller, agents and load %s", len(m.vms), runtime.NumCPU(), strings.TrimSpace(firstLine("/proc/loadavg")))
	m.t.Logf("%8s %10s %12s %12s %10s %12s %12s %12s %12s %12s", "until", "intervals", "lag p50 ms", "lag p99 ms", "CPU cores",
		"CPU µs/int.", "agents' µs", "wire B/int.", "RSS KiB/ag.", "heap KiB/ag.")
	for _, until := range []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, lasts} {
		if until > lasts || until < time.Since(began) {
			continue
		}
		at := time.Now()
		time.Sleep(time.Until(began.Add(until)))
		lag, n, _ := m.sink.look()
		total += n
		now, agentsNow, wire := costOf(os.Getpid()), m.agentsCost(), m.dialer.received.Load()
		cpu := now.cpu - before.cpu
		var heap runtime.MemStats
		runtime.ReadMemStats(&heap)
		each := func(v float64, of int) string { return fmt.Sprintf("%.0f", v/float64(max(1, of))) }
		m.t.Logf("%8v %10d %12s %12s %10.2f %12s %12s %12s %12s %12s", until, n, each(lag.Quantile(0.5)/1e6, 1), each(lag.Quantile(0.99)/1e6, 1),
			cpu.Seconds()/time.Since(at).Seconds(), each(float64(cpu.Microseconds()), n), each(float64((agentsNow.cpu-agentsBefore.cpu).Microseconds()), n),
			each(float64(wire-wireBefore), n), each(float64(now.resident)/1024, len(m.vms)), each(float64(heap.HeapInuse)/1024, len(m.vms)))
		before, agentsBefore, wireBefore = now, agentsNow, wire
	}
	if total == 0 {
		m.t.Error("nothing was received")
	}
	m.t.Logf("machine: load %s; %d goroutines, %d descriptors", strings.TrimSpace(firstLine("/proc/loadavg")), runtime.NumGoroutine(), before.descriptors)
}
