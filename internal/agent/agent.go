// Package agent is what runs inside a VM: it takes workloads, runs them with the generators it was given, and hands
// back intervals. It starts no processes of its own and offers no shell, only the typed operations of package wire.
//
//	controller: client.Client ◀── HTTP/2 over one connection ──▶ Server ──▶ Generator ──▶ Intervals
//
//	command.go    the agent's process
//	listener.go   controllers that come over the network, and strangers (crowd.go)
//	handler.go    the operations
//	workloads.go  the workloads that the agent knows, and the lease holder that may change them
//	task.go       one workload: its run and its buffered intervals
//	meter.go      counters for Prometheus (exposition.go)
//
// A connection is any net.Conn: an inherited socket pair on the local target, mutual TLS elsewhere. Workloads outlive a
// connection: a disconnected agent keeps running, buffers intervals, and delivers each exactly once when the controller
// has reconnected. Command decides whether a lost connection ends the process.
package agent

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/load"
)

// Options configure an agent. Generators is required, the other fields have defaults.
type Options struct {
	Generators map[string]load.Generator // by the name that workloads use
	VM         string                    // name of the VM, for messages and metrics
	Version    string                    // of the program
	// Devices are what workloads may touch. A workload that names another device or path is refused. Nil allows what
	// the workload itself lists, for an agent in a VM of its own.
	Devices []load.Device
	// MetricsAddress is reported in Hello: where Prometheus can scrape this agent's metrics.
	MetricsAddress string
	VCPUs          int
	RAMBytes       int64
	// Identity tells what distinguishes this machine from others, for Hello. Nil where agents share a machine.
	Identity func() (machineID string, addresses []string)
	// BufferFor is how long intervals are kept for a controller that is away. 0: 20 minutes.
	BufferFor time.Duration
	// Log receives what the agent has to say: loads that begin and end, faults of connections. May be nil; controllers
	// can ask for the end of it.
	Log io.Writer
	// Failpoint is called at named points of the code, so that tests can kill the agent there; nil otherwise.
	Failpoint func(name string)
}

// Server serves controllers. It owns all running workloads, independent of connections.
type Server struct {
	options   Options
	boot      string // random, new with every start, so that a controller notices a power cycle
	started   time.Time
	meter     *meter
	tail      *logTail
	log       *log.Logger // into tail
	workloads workloads

	stop context.CancelFunc // ends all workloads
	ctx  context.Context    // of all workloads; the one place where a context is kept, because work outlives requests

	buffered atomic.Int64 // bytes in all buffers
	heard    atomic.Int64 // uptime when a controller was last heard over the network, nanoseconds
	// uptime and wall are the agent's clocks; tests set others.
	uptime func() time.Duration
	wall   func() time.Time
}

// NewServer returns a server without connections.
func NewServer(o Options) *Server {
	if o.BufferFor <= 0 {
		o.BufferFor = bufferForDefault
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{options: o, boot: wire.NewID(), started: time.Now(), ctx: ctx, stop: stop}
	s.workloads = workloads{server: s, byID: map[string]*task{}}
	s.uptime, s.wall = func() time.Duration { return time.Since(s.started) }, time.Now
	s.meter = newMeter(o, s.boot, s.started)
	s.tail = newLogTail(o.Log)
	s.log = log.New(s.tail, "", log.LstdFlags|log.Lmicroseconds|log.LUTC|log.Lmsgprefix)
	s.log.Printf("agent %s of VM %q, process %d", o.Version, o.VM, os.Getpid())
	return s
}

// Serve serves one connection until it closes or ctx ends, then stops all load and waits for it.
func Serve(ctx context.Context, conn net.Conn, o Options) error {
	s := NewServer(o)
	defer s.Close()
	return s.ServeConn(ctx, conn)
}

// ServeConn serves one connection until the peer closes it (nil) or ctx ends. Workloads continue afterwards.
func (s *Server) ServeConn(ctx context.Context, conn net.Conn) error {
	listener := newOneConn(s.meter.count(conn))
	server := s.httpServer(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // it ends when the connection does
	}()
	var err error
	select {
	case <-listener.gone:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = server.Close()
	_ = listener.Close()
	_ = conn.Close()
	<-served
	return err
}

// Close stops all load, waits for its end, and refuses all further requests.
func (s *Server) Close() {
	s.workloads.close()
	s.stop()
	s.workloads.running.Wait()
}

func (s *Server) httpServer(ctx context.Context) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:        s.Handler(),
		Protocols:      protocols,
		MaxHeaderBytes: wire.HeaderBytesMax,
		ErrorLog:       s.log,
		BaseContext:    func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
}

func (s *Server) hello() wire.Hello {
	s.at("agent.hello")
	h := wire.Hello{
		Protocol: wire.Version, Version: s.options.Version, Boot: s.boot, VM: s.options.VM, PID: os.Getpid(),
		MetricsAddress: s.options.MetricsAddress, UnixNanos: s.wall().UnixNano(),
		UptimeNanos: s.uptime().Nanoseconds(),
	}
	if s.options.Identity != nil {
		h.MachineID, h.Addresses = s.options.Identity()
		h.CPUs = cpusOf(os.DirFS("/"))
	}
	for name := range s.options.Generators {
		h.Generators = append(h.Generators, name)
	}
	return h
}

// oneConn is a listener that yields one connection and then waits until that is closed.
type oneConn struct {
	conn net.Conn
	once sync.Once
	gone chan struct{} // closed with the connection
	next chan net.Conn
}

func newOneConn(conn net.Conn) *oneConn {
	l := &oneConn{gone: make(chan struct{}), next: make(chan net.Conn, 1)}
	l.conn = &wire.WatchedConn{Conn: conn, Closed: func() { l.once.Do(func() { close(l.gone) }) }}
	l.next <- l.conn
	return l
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.next:
		return c, nil
	default:
	}
	<-l.gone
	return nil, net.ErrClosed
}

// Close ends Accept. It closes the connection too: nothing else would end its use.
func (l *oneConn) Close() error { return l.conn.Close() }

func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }
