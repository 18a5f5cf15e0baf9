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
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
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
)

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
type simulatedLoad struct{ seconds []interval.Interval }

func newSimulatedLoad() *simulatedLoad {
	const variants, operations = 64, 500
	g := &simulatedLoad{}
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
		end := at - at%int64(time.Second) + int64(time.Second)
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
}

func (s *simulatedTarget) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addresses[vm.Name])
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, s.authority.Controller(vm.Name))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

func simulate(t *testing.T, vms []target.VM) (*simulatedTarget, *exec.Cmd) {
	t.Helper()
	authority, err := trust.New("run-1", 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s := &simulatedTarget{authority: authority, addresses: map[string]string{}}
	var list []simulatedAgent
	for _, vm := range vms {
		files, err := authority.Agent(vm.Name)
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
	return s, cmd
}

// lagSink measures how long after its end an interval was recorded.
type lagSink struct {
	record *recorder
	mu     sync.Mutex
	lag    stat.Histogram // nanoseconds, since the last look
	count  int
	seen   map[string]int64 // by VM: the sequence that comes next
	wrong  int
}

func (s *lagSink) Interval(iv interval.Interval) {
	vm, sequence, end := iv.VM, iv.Sequence, iv.EndNanos()
	s.record.Interval(iv)
	now := s.record.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag.Record(uint64(max(0, now-end)))
	s.count++
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
	record   *recorder
	observer *recordingObserver
	agents   *pool.Pool
	sink     *lagSink
	simulate *exec.Cmd
}

func newManyAgents(t *testing.T, count int) *manyAgents {
	t.Helper()
	m := &manyAgents{t: t}
	for i := range count {
		m.vms = append(m.vms, target.VM{Name: fmt.Sprintf("many-%04d", i+1), Group: "many", Ordinal: i, NodeID: "node-1", Power: target.PowerOn})
	}
	dialer, cmd := simulate(t, m.vms)
	dir := filepath.Join(t.TempDir(), "run")
	manifest := resulttest.Manifest(resulttest.Params{VMs: 1, Duration: time.Second})
	w, err := result.Create(dir, manifest)
	if err != nil {
		t.Fatal(err)
	}
	m.record = &recorder{zero: time.Now(), manifest: manifest, writer: w, secrets: &secrets{}, cache: newCache()}
	m.record.cache.start(filepath.Join(dir, metric.Dir), manifest, nil)
	t.Cleanup(func() {
		store := m.record.cache.take()
		if store == nil {
			t.Error("the metric store gave up")
		} else if err := store.Close(); err != nil {
			t.Error(err)
		}
		if err := errors.Join(w.Err(), w.Close()); err != nil {
			t.Error(err)
		}
	})
	m.observer = &recordingObserver{m.record, newExporters(&plan.Plan{}, nil, nil, m.record)}
	m.agents = pool.New(dialer, pool.Options{Fence: 1, Zero: m.record.zero, SilentFor: silentForRun, Observer: m.observer})
	t.Cleanup(m.agents.Close)
	m.sink = &lagSink{record: m.record, seen: map[string]int64{}}
	m.simulate = cmd
	return m
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
	cpu      time.Duration
	resident int64
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
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every platform of Linux that we build for
	return cost{time.Duration(user+system) * tick, pages * int64(os.Getpagesize())}
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
	m := newManyAgents(t, count)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var ended sync.WaitGroup
	m.start(ctx, &ended)
	if t.Failed() {
		return
	}
	m.watch(lasts)
	stop()
	ended.Wait()
	_, _, wrong := m.sink.look()
	if wrong > 0 || len(m.sink.seen) != count {
		t.Errorf("%d intervals out of turn, %d agents of %d were heard", wrong, len(m.sink.seen), count)
	}
}

// watch prints the progress, at increasing intervals.
func (m *manyAgents) watch(lasts time.Duration) {
	began, total := time.Now(), 0
	before, agentsBefore, at := costOf(os.Getpid()), costOf(m.simulate.Process.Pid), began
	m.t.Logf("%d agents, one interval a second with four histograms each; %d cores, shared by controller, agents and load %s",
		len(m.vms), runtime.NumCPU(), strings.TrimSpace(firstLine("/proc/loadavg")))
	m.t.Logf("%8s %10s %12s %12s %10s %10s %10s %12s %12s %10s", "until", "intervals", "lag p50 ms", "lag p99 ms", "max ms",
		"CPU cores", "of all %", "RSS MiB", "heap MiB", "agents' CPU")
	for _, until := range []time.Duration{10 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, lasts} {
		if until > lasts || until < time.Since(began) {
			continue
		}
		time.Sleep(time.Until(began.Add(until)))
		lag, n, _ := m.sink.look()
		total += n
		now, agentsNow := costOf(os.Getpid()), costOf(m.simulate.Process.Pid)
		elapsed := time.Since(at).Seconds()
		cores := (now.cpu - before.cpu).Seconds() / elapsed
		var heap runtime.MemStats
		runtime.ReadMemStats(&heap)
		ms := func(v float64) string { return fmt.Sprintf("%.0f", v/1e6) }
		m.t.Logf("%8v %10d %12s %12s %10s %10.2f %10.0f %12.0f %12.0f %10.2f", until, n, ms(lag.Quantile(0.5)), ms(lag.Quantile(0.99)), ms(float64(lag.Max())),
			cores, 100*cores/float64(runtime.NumCPU()), float64(now.resident)/(1<<20), float64(heap.HeapInuse)/(1<<20), (agentsNow.cpu-agentsBefore.cpu).Seconds()/elapsed)
		before, agentsBefore, at = now, agentsNow, time.Now()
	}
	if total == 0 {
		m.t.Error("nothing was received")
	}
	m.t.Logf("machine: load %s", strings.TrimSpace(firstLine("/proc/loadavg")))
}
