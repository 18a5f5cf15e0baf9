package session_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
	targetbuiltin "github.com/braggdev/bragg/internal/target/builtin"
	"github.com/braggdev/bragg/internal/trust"
)

// Two controllers, each a process with a folder of runs of its own, race for one target again and again. They reach its agent by mutual TLS. The one without the lease,
// and the one that lost it while it was stopped, give orders all the same; the agent must obey none.

const (
	racerVariable  = "BRAGG_TEST_RACER"
	roundsVariable = "BRAGG_SOAK_RACES" // how many rounds; "make soak" sets it
	racedVM        = "DB-0001"
	racedTarget    = "contested"
)

// racerOrder is the single request that a racer process receives.
type racerOrder struct {
	Runs             string // a folder of its own
	Target           string // both have the same
	Leases, Address  string
	Name             string // of the agent, as controllers of the run request it
	Certificate, Key []byte // of the run's controller
}

// racer is one controller: it obeys lines of its input and answers each with one line.
type racer struct {
	order  racerOrder
	target target.Target
	number int
	lease  *control.Lease
	fence  uint64 // of the last lease; a controller that lost it keeps using it
	cancel context.CancelFunc
	ended  chan error
	half   *halfRequest
}

func race() int {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	r := &racer{}
	for in.Scan() {
		if r.order.Runs == "" {
			if err := json.Unmarshal(in.Bytes(), &r.order); err != nil {
				panic(err)
			}
			var err error
			r.target, err = targetbuiltin.Open(context.Background(), r.order.Target, target.OpenOptions{
				Dir: r.order.Runs, Leases: r.order.Leases, AgentProgram: program(r.order.Leases).Agent,
			})
			if err != nil {
				panic(err)
			}
			defer r.target.Close()
			continue
		}
		fmt.Println(r.obey(in.Text()))
	}
	return 0
}

func (r *racer) obey(line string) string {
	switch line {
	case "acquire":
		return r.acquire()
	case "load":
		return r.load()
	case "half":
		return r.begin()
	case "release": // it has given up, with orders possibly still in flight
		return outcomeOf(r.lease.Release())
	case "orders": // as if it still had the lease
		return r.orders()
	case "rest":
		return r.half.finish()
	case "end":
		r.cancel()
		return outcomeOf(<-r.ended)
	}
	return "unknown"
}

func outcomeOf(err error) string {
	if err == nil {
		return "ok"
	}
	return strconv.Itoa(diag.ExitCode(err)) + " " + err.Error()
}

func (r *racer) acquire() string {
	lease, err := control.AcquireLease(r.order.Runs, racedTarget, fmt.Sprintf("run-%d", os.Getpid()), nil)
	if err != nil {
		return outcomeOf(err)
	}
	if err := lease.AtTarget(context.Background(), r.target, []byte("{}")); err != nil {
		return outcomeOf(errors.Join(err, lease.Release()))
	}
	r.lease, r.fence = lease, lease.Fence
	return fmt.Sprintf("won %d", r.fence)
}

func (r *racer) dial(ctx context.Context) (net.Conn, error) {
	pair, err := tls.X509KeyPair(r.order.Certificate, r.order.Key)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.order.Address)
	if err != nil {
		return nil, err
	}
	// The identity of the peer is not under test.
	return tls.Client(conn, &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, ServerName: r.order.Name, InsecureSkipVerify: true,
	}), nil
}

func (r *racer) work() load.Workload {
	r.number++
	return load.Workload{Name: fmt.Sprintf("fence-%d-%d", r.fence, r.number), VM: racedVM, Generator: "endless"}
}

// load starts a load and returns once it runs.
func (r *racer) load() string {
	conn, err := r.dial(context.Background())
	if err != nil {
		return outcomeOf(err)
	}
	began := make(chan struct{})
	var once sync.Once
	client := client.New(conn, client.Options{Fence: r.fence, Redial: r.dial,
		Started: func(load.Workload, interval.Engine) { once.Do(func() { close(began) }) }})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := client.Run(ctx, r.work(), load.SinkFunc(func(interval.Interval) {}))
		ended <- errors.Join(err, client.Close())
	}()
	r.cancel, r.ended = cancel, ended
	select {
	case <-began:
		return "ok"
	case err := <-ended:
		cancel()
		ended <- err
		return outcomeOf(err)
	}
}

// orders sends every order that changes something, with the fence of the last lease, and returns the outcome of each.
func (r *racer) orders() string {
	conn, err := r.dial(context.Background())
	if err != nil {
		return outcomeOf(err)
	}
	client := http.Client{Transport: transportOver(conn)}
	defer conn.Close()
	text, err := json.Marshal(r.work())
	if err != nil {
		return outcomeOf(err)
	}
	id := strings.Repeat("ab", 16)
	var said []string
	for _, o := range []struct{ method, path string }{
		{http.MethodPut, ""}, {http.MethodPost, "/start?at_uptime_ns=0"}, {http.MethodPost, "/acknowledge?through=5"},
		{http.MethodPost, "/stop"}, {http.MethodDelete, ""},
	} {
		request, err := http.NewRequest(o.method, "http://agent/v1/workloads/"+id+o.path, strings.NewReader(string(text)))
		if err != nil {
			return outcomeOf(err)
		}
		said = append(said, r.send(&client, request))
	}
	return strings.Join(slices.Compact(said), ",")
}

func (r *racer) send(client *http.Client, request *http.Request) string {
	request.Header.Set("Bragg-Fence", strconv.FormatUint(r.fence, 10))
	response, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	var body struct{ Code string }
	_ = json.NewDecoder(response.Body).Decode(&body)
	return fmt.Sprintf("%d %s", response.StatusCode, body.Code)
}

func transportOver(conn net.Conn) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: protocols, DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
}

// halfRequest is an order of which the agent has half: its head, with a fence that is good by then, and not its body.
type halfRequest struct {
	body *io.PipeWriter
	text []byte
	said chan string
}

func (r *racer) begin() string {
	conn, err := r.dial(context.Background())
	if err != nil {
		return outcomeOf(err)
	}
	text, err := json.Marshal(r.work())
	if err != nil {
		return outcomeOf(err)
	}
	read, write := io.Pipe()
	r.half = &halfRequest{write, text, make(chan string, 1)}
	request, err := http.NewRequest(http.MethodPut, "http://agent/v1/workloads/"+strings.Repeat("cd", 16), read)
	if err != nil {
		return outcomeOf(err)
	}
	go func() {
		defer conn.Close()
		r.half.said <- r.send(&http.Client{Transport: transportOver(conn)}, request)
	}()
	if _, err := write.Write(text[:len(text)/2]); err != nil {
		return outcomeOf(err)
	}
	return "ok"
}

func (h *halfRequest) finish() string {
	_, _ = h.body.Write(h.text[len(h.text)/2:])
	_ = h.body.Close()
	return <-h.said
}

// racerProcess is a racer as the test sees it.
type racerProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func startRacer(t *testing.T, order racerOrder) *racerProcess {
	t.Helper()
	order.Runs = t.TempDir()
	p := &racerProcess{t: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), racerVariable+"=1")
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.in.Close()
		_ = p.cmd.Wait()
	})
	text, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	p.tell(string(text))
	return p
}

func (p *racerProcess) tell(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *racerProcess) answer() string {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatal("a controller is gone")
	}
	return p.lines.Text()
}

func (p *racerProcess) ask(line string) string {
	p.t.Helper()
	p.tell(line)
	return p.answer()
}

func (p *racerProcess) must(line string) {
	p.t.Helper()
	if got := p.ask(line); got != "ok" {
		p.t.Fatalf("%s: %s", line, got)
	}
}

func (p *racerProcess) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// endless is a generator that runs until it is stopped, and records the owner of each load.
type endless struct {
	mu    sync.Mutex
	began []string
}

func (g *endless) Plan(load.Workload) (load.Plan, error) { return load.Plan{}, nil }

func (g *endless) Prepare(_ context.Context, w load.Workload) (load.Instance, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.began = append(g.began, w.Name)
	return endlessRun{}, nil
}

type endlessRun struct{}

func (endlessRun) Run(ctx context.Context, _ load.Sink) error { <-ctx.Done(); return nil }

func (endlessRun) Close() error { return nil }

const refusedByFence = "409 agent-stale-fence"

// The lease is on the hosts, where a process keeps it. Local targets may be used by several controllers.
func TestTwoControllersRaceForHosts(t *testing.T) {
	raceFor(t, newHosts(t).file)
}

// roundsUsual is the default number of rounds: each takes seconds.
const roundsUsual = 5

func raceFor(t *testing.T, where string) {
	rounds := roundsUsual
	if text := os.Getenv(roundsVariable); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	g := &endless{}
	order := contested(t, g)
	order.Target = where
	racers := []*racerProcess{startRacer(t, order), startRacer(t, order)}
	var granted []string
	wins := make([]int, len(racers))
	for round := range rounds {
		for _, r := range racers {
			r.tell("acquire")
		}
		answers := []string{racers[0].answer(), racers[1].answer()}
		winner := slices.IndexFunc(answers, func(a string) bool { return strings.HasPrefix(a, "won ") })
		if winner < 0 || !strings.HasPrefix(answers[1-winner], strconv.Itoa(diag.ExitLocked)+" ") {
			t.Fatalf("round %d: %q", round, answers)
		}
		wins[winner]++
		w, l := racers[winner], racers[1-winner]
		w.must("load")
		granted = append(granted, "fence-"+strings.TrimPrefix(answers[winner], "won "))
		// The loser's last lease is older, or it never had one.
		if got := l.ask("orders"); got != refusedByFence {
			t.Fatalf("round %d: orders of the loser: %s", round, got)
		}
		// The winner pauses with an order half sent, and is stopped. The other takes over; then the first continues.
		w.must("half")
		w.must("release")
		w.signal(syscall.SIGSTOP)
		took := l.ask("acquire")
		if !strings.HasPrefix(took, "won ") {
			t.Fatalf("round %d: take over: %s", round, took)
		}
		l.must("load")
		granted = append(granted, "fence-"+strings.TrimPrefix(took, "won "))
		w.signal(syscall.SIGCONT)
		for _, line := range []string{"orders", "rest"} {
			if got := w.ask(line); got != refusedByFence {
				t.Fatalf("round %d: %s of the one that was stopped: %s", round, line, got)
			}
		}
		// The agent stopped the load of the first controller when the other took over.
		_ = w.ask("end")
		l.must("end")
		l.must("release")
	}
	checkGranted(t, g, granted)
	t.Logf("%d rounds, %v wins, %d loads, none of them without the lease", rounds, wins, len(granted))
}

// checkGranted fails unless the agent ran exactly one load for each lease.
func checkGranted(t *testing.T, g *endless, granted []string) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	var began []string
	for _, name := range g.began {
		began = append(began, name[:strings.LastIndexByte(name, '-')])
	}
	if !slices.Equal(began, granted) {
		t.Errorf("the agent ran %q, leases allowed %q", began, granted)
	}
}

// contested serves an agent on this machine and returns how to reach it.
func contested(t *testing.T, g load.Generator) racerOrder {
	t.Helper()
	authority, err := trust.New("run-1", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Agent(racedVM)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := trust.Server(files)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := agent.NewServer(agent.Options{Generators: map[string]load.Generator{"endless": g}, VM: racedVM})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.ServeTLS(ctx, l, settings) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		s.Close()
	})
	controller := authority.Controller(racedVM)
	pair := controller.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return racerOrder{
		Leases: t.TempDir(), Address: l.Addr().String(), Name: controller.ServerName,
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}
}
