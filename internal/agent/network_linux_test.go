package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/trust"
)

// island is a network namespace with an agent in it, on a cable of its own. The namespace ends with the process that holds it, and
// the cable with the namespace.
type island struct {
	holder    *exec.Cmd
	cable     string // our end
	near, far string // addresses
	authority *trust.Authority
	identity  TLS

	mu    sync.Mutex
	agent *exec.Cmd
}

const (
	islandPort = "7411"
	islandVM   = "DB-0001"
)

// islands counts the cables of this process, so that several tests may have one at the same time.
var islands atomic.Int32

func newIsland(t *testing.T) *island {
	t.Helper()
	testreq.Root(t)
	for _, program := range []string{"ip", "nsenter", "iptables"} {
		testreq.Program(t, program)
	}
	n := int(islands.Add(1))
	third, fourth := os.Getpid()%256, 4*(n%64)
	i := &island{
		cable: fmt.Sprintf("bragg%d-%d", os.Getpid()%100_000, n),
		near:  fmt.Sprintf("10.213.%d.%d", third, fourth+1), far: fmt.Sprintf("10.213.%d.%d", third, fourth+2),
		authority: newAuthority(t, "run-1", 24*time.Hour),
	}
	i.holder = exec.Command(os.Args[0], "__hold")
	i.holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	stdin, err := i.holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := i.holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		i.stopAgent(syscall.SIGTERM)
		_ = stdin.Close()
		_ = i.holder.Wait()
	})
	i.command(t, "ip", "link", "add", i.cable, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(i.holder.Process.Pid))
	i.command(t, "ip", "addr", "add", i.near+"/30", "dev", i.cable)
	i.command(t, "ip", "link", "set", i.cable, "up")
	i.inside(t, "ip", "addr", "add", i.far+"/30", "dev", "eth0")
	i.inside(t, "ip", "link", "set", "eth0", "up")
	i.identity = i.writeIdentity(t)
	i.startAgent(t)
	return i
}

func (i *island) writeIdentity(t *testing.T) TLS {
	t.Helper()
	f, dir := identity(t, i.authority, islandVM), t.TempDir()
	files := TLS{Certificate: filepath.Join(dir, "certificate"), Key: filepath.Join(dir, "key"), Authority: filepath.Join(dir, "authority")}
	for path, text := range map[string][]byte{files.Certificate: f.Certificate, files.Key: f.Key, files.Authority: f.Authority} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func (i *island) command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

func (i *island) inside(t *testing.T, args ...string) {
	t.Helper()
	i.command(t, "nsenter", append([]string{"--net", "--target", strconv.Itoa(i.holder.Process.Pid), "--"}, args...)...)
}

func (i *island) startAgent(t *testing.T) {
	t.Helper()
	config, err := json.Marshal(Config{VM: islandVM, Listen: i.far + ":" + islandPort, TLS: i.identity})
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.agent = exec.Command("nsenter", "--net", "--target", strconv.Itoa(i.holder.Process.Pid), "--", os.Args[0], "__agent", string(config))
	i.agent.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := i.agent.Start(); err != nil {
		t.Fatal(err)
	}
}

func (i *island) stopAgent(signal syscall.Signal) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.agent != nil {
		_ = i.agent.Process.Signal(signal)
		_ = i.agent.Wait()
		i.agent = nil
	}
}

func (i *island) dial(ctx context.Context) (net.Conn, error) {
	conn, err := dialTLS(ctx, i.far+":"+islandPort, i.authority.Controller(islandVM))
	if err != nil {
		return nil, err
	}
	return conn.(*tls.Conn), nil
}

// connect returns a client as a run has it; it waits for the agent's start.
func (i *island) connect(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	o.Redial, o.Zero = i.dial, time.Now()
	if o.PingEvery == 0 {
		o.PingEvery = 5 * time.Second
	}
	var conn net.Conn
	waitUntil(t, func() (ok bool) {
		var err error
		conn, err = i.dial(t.Context())
		return err == nil
	})
	c := client.New(conn, o)
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// Ways to cut the network, each undone by the function that it returns.
var cuts = map[string]func(i *island, t *testing.T) (repair func()){
	"link down": func(i *island, t *testing.T) func() {
		i.command(t, "ip", "link", "set", i.cable, "down")
		return func() { i.command(t, "ip", "link", "set", i.cable, "up") }
	},
	"agent is not heard": func(i *island, t *testing.T) func() {
		i.inside(t, "iptables", "-w", "-A", "OUTPUT", "-j", "DROP")
		return func() { i.inside(t, "iptables", "-w", "-F", "OUTPUT") }
	},
	"agent does not hear": func(i *island, t *testing.T) func() {
		i.inside(t, "iptables", "-w", "-A", "INPUT", "-j", "DROP")
		return func() { i.inside(t, "iptables", "-w", "-F", "INPUT") }
	},
}

// outage runs a load of one-second intervals, cuts the network for a while, and checks that every interval arrived, once.
func outage(t *testing.T, kind string, lasts, pingEvery time.Duration) {
	i := newIsland(t)
	var broke, back atomic.Int32
	c := i.connect(t, client.Options{PingEvery: pingEvery, Disconnected: func(again bool, away time.Duration) {
		t.Logf("connected: %v, after %v", again, away)
		if again {
			back.Add(1)
		} else {
			broke.Add(1)
		}
	}})
	w := workload()
	w.Generator, w.IntervalLength, w.Devices = "steady", time.Second, nil
	sink := newCollector()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, w, sink) }()
	sink.waitFor(t, 2)
	repair := cuts[kind](i, t)
	time.Sleep(lasts)
	during := sink.count()
	repair()
	// What was made meanwhile arrives, and then what is made now.
	waitLong(t, func() bool { return sink.count() > int((lasts+3*time.Second)/time.Second) })
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	n := sink.count()
	sink.checkComplete(t, n)
	t.Logf("%s for %v: %d intervals, each once; %d had come before the cut ended; connection lost %d times, made again %d times",
		kind, lasts, n, during, broke.Load(), back.Load())
	if broke.Load() != back.Load() {
		t.Errorf("the connection was lost %d times and came back %d times", broke.Load(), back.Load())
	}
}

func waitLong(t *testing.T, ok func() bool) {
	t.Helper()
	for range 4 * 180 {
		if ok() {
			return
		}
		time.Sleep(250 * time.Millisecond)
	}
	t.Fatal("the condition was not reached")
}

// outageVariable is for "make soak": how long the network is away, "10m".
const outageVariable = "BRAGG_SOAK_OUTAGE"

// TestOutage: a second, and ten, without the network; or as long as the soak wants it.
func TestOutage(t *testing.T) {
	t.Parallel() // it waits
	if testing.Short() {
		t.Skip("cuts a network for seconds")
	}
	if text := os.Getenv(outageVariable); text != "" {
		lasts, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		for kind := range cuts {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				outage(t, kind, lasts, 0)
			})
		}
		return
	}
	for kind := range cuts {
		if kind == "link down" {
			t.Run(kind+" 1s", func(t *testing.T) {
				t.Parallel()
				outage(t, kind, time.Second, 0)
			})
		}
		t.Run(kind+" 10s", func(t *testing.T) {
			t.Parallel()
			outage(t, kind, 10*time.Second, 0)
		})
		t.Run(kind+" beyond patience", func(t *testing.T) {
			t.Parallel()
			outage(t, kind, 5*time.Second, 500*time.Millisecond) // a ping each half second, given up after a second and a half more
		})
	}
}

// TestLossyNetwork: every tenth packet is lost on either way. That is slow, and no reason to give up a connection or to lose anything.
func TestLossyNetwork(t *testing.T) {
	t.Parallel() // it waits
	if testing.Short() {
		t.Skip("spoils a network for seconds")
	}
	i := newIsland(t)
	for _, chain := range []string{"INPUT", "OUTPUT"} {
		i.inside(t, "iptables", "-w", "-A", chain, "-m", "statistic", "--mode", "random", "--probability", "0.1", "-j", "DROP")
	}
	var broke atomic.Int32
	c := i.connect(t, client.Options{Disconnected: func(bool, time.Duration) { broke.Add(1) }})
	w := workload()
	w.Generator, w.IntervalLength, w.Devices = "steady", 20*time.Millisecond, nil
	sink := newCollector()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, w, sink) }()
	waitLong(t, func() bool { return sink.count() >= 200 })
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	sink.checkComplete(t, sink.count())
	if n := broke.Load(); n > 0 {
		t.Errorf("the connection was given up %d times", n)
	}
}

// TestRestartedAgentIsNotMistaken: the machine lost its power without a word and is up again, with an agent that knows nothing.
func TestRestartedAgentIsNotMistaken(t *testing.T) {
	t.Parallel() // it waits
	if testing.Short() {
		t.Skip("cuts a network")
	}
	i := newIsland(t)
	c := i.connect(t, client.Options{PingEvery: 300 * time.Millisecond})
	w := workload()
	w.Generator, w.IntervalLength, w.Devices = "steady", 50*time.Millisecond, nil
	sink := newCollector()
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), w, sink) }()
	sink.waitFor(t, 3)
	repair := cuts["link down"](i, t)
	i.stopAgent(syscall.SIGKILL) // without a message to the controller
	i.startAgent(t)
	repair()
	if err := <-done; !errors.Is(err, load.ErrLost) || !strings.Contains(err.Error(), "agent restarted") {
		t.Errorf("got %v", err)
	}
	<-c.Lost()
	if _, err := c.Hello(t.Context()); !errors.Is(err, load.ErrLost) {
		t.Errorf("the client speaks to another agent: %v", err)
	}
}

// TestClosedClientEndsItsWaitersSoon: a run that has switched a VM off itself closes its client. Waiters return without a
// network timeout.
func TestClosedClientEndsItsWaitersSoon(t *testing.T) {
	t.Parallel() // it waits
	if testing.Short() {
		t.Skip("cuts a network")
	}
	i := newIsland(t)
	c := i.connect(t, client.Options{PingEvery: 300 * time.Millisecond})
	w := workload()
	w.Generator, w.IntervalLength, w.Devices = "steady", 50*time.Millisecond, nil
	done := make(chan error, 2)
	sink := newCollector()
	go func() { done <- c.Run(t.Context(), w, sink) }()
	sink.waitFor(t, 3)
	defer cuts["agent is not heard"](i, t)()
	go func() {
		_, err := c.Hello(t.Context())
		done <- err
	}()
	// Whether the loss was noticed by then or not.
	_ = c.Close()
	for range 2 {
		if err := <-done; !errors.Is(err, load.ErrLost) {
			t.Errorf("got %v", err)
		}
	}
}

// TestStopDuringAnOutage: a stop that was ordered while the agent could not be reached is obeyed when it can.
func TestStopDuringAnOutage(t *testing.T) {
	t.Parallel() // it waits
	if testing.Short() {
		t.Skip("cuts a network")
	}
	i := newIsland(t)
	c := i.connect(t, client.Options{PingEvery: 300 * time.Millisecond, StopWithin: 30 * time.Second})
	w := workload()
	w.Generator, w.IntervalLength, w.Devices = "steady", 50*time.Millisecond, nil
	sink := newCollector()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, w, sink) }()
	sink.waitFor(t, 3)
	repair := cuts["agent does not hear"](i, t)
	stop()
	time.Sleep(3 * time.Second)
	repair()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	sink.checkComplete(t, sink.count())
}
