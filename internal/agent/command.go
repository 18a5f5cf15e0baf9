package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
)

// Config is the only argument of an agent's process, as JSON or as the absolute path of a file with it.
type Config struct {
	VM       string        `json:"vm"`
	VCPUs    int           `json:"vcpus,omitempty"`
	RAMBytes int64         `json:"ram_bytes,omitempty"`
	Devices  []load.Device `json:"devices,omitempty"`
	// ConnectionFD is an inherited, connected stream socket. When it closes, the agent ends at once.
	ConnectionFD int `json:"connection_fd,omitempty"`
	// MetricsFD is an inherited listener for /metrics; 0: none.
	MetricsFD int `json:"metrics_fd,omitempty"`
	// Listen is the address for controllers, or "unix:" with the path of a socket, with mutual TLS 1.3, instead of ConnectionFD.
	Listen string `json:"listen,omitempty"`
	TLS    TLS    `json:"tls,omitzero"`
	// MetricsListen is the address for /metrics of an agent that listens; empty: none.
	MetricsListen string `json:"metrics_listen,omitempty"`
	// Files are made before the agent listens, where they do not exist: disks that are files of a file system.
	Files []File `json:"files,omitempty"`
}

// File is a file in place of a disk.
type File struct {
	Path      string `json:"path"`
	SizeBytes int64  `json:"size_bytes"`
}

// Program has the inputs of Command from the surrounding program.
type Program struct {
	Generators map[string]load.Generator
	Version    string
	Stderr     io.Writer
	Failpoint  func(name string) // see Options
}

// Command is the body of an agent's process: it serves until the connection closes, ctx ends or a signal ends the
// process, and returns the exit code. The caller must exit with it immediately, so that the resources of generators are
// released with the process.
func Command(ctx context.Context, args []string, p Program) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, args, p); err != nil {
		fmt.Fprintf(p.Stderr, "agent: %v\n", err)
		return diag.ExitCode(err)
	}
	return diag.ExitPass
}

func command(ctx context.Context, args []string, p Program) error {
	if len(args) != 1 {
		return &diag.Error{Code: "usage", Message: "want one argument, the configuration as JSON or its path", Exit: diag.ExitUsage}
	}
	text := []byte(args[0])
	if filepath.IsAbs(args[0]) {
		var err error
		if text, err = os.ReadFile(args[0]); err != nil {
			return &diag.Error{Code: "usage", Message: "read configuration", Err: err, Exit: diag.ExitUsage}
		}
	}
	var c Config
	if err := json.Unmarshal(text, &c); err != nil {
		return &diag.Error{Code: "usage", Message: "read configuration", Err: err, Exit: diag.ExitUsage}
	}
	if err := makeFiles(c.Files); err != nil {
		return err
	}
	options := Options{
		Generators: p.Generators, VM: c.VM, Version: p.Version, Devices: c.Devices, VCPUs: c.VCPUs, RAMBytes: c.RAMBytes,
		Log: p.Stderr, Failpoint: p.Failpoint,
	}
	options.at("agent.configured")
	metrics, err := metricsListener(c)
	if err != nil {
		return err
	}
	if metrics != nil {
		options.MetricsAddress = metrics.Addr().String()
	}
	s := NewServer(options)
	if metrics != nil {
		stop := s.serveMetrics(metrics)
		defer stop()
	}
	s.at("agent.ready")
	defer s.closeWithin(time.Second)
	if c.Listen != "" {
		s.options.Identity = identityAt(c.Listen)
		return s.listenTLS(ctx, c)
	}
	conn, err := inheritedConn(c.ConnectionFD)
	if err != nil {
		return err
	}
	err = s.ServeConn(ctx, conn)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// closeWithin stops all load and waits for it, but not for long: the process is about to end, and the load with it.
func (s *Server) closeWithin(limit time.Duration) {
	closed := make(chan struct{})
	go func() {
		s.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(limit):
	}
}

func inheritedConn(fd int) (net.Conn, error) {
	// A file made of a standard stream would close it when it is collected.
	var file *os.File
	if fd >= 3 {
		file = os.NewFile(uintptr(fd), "connection")
	}
	if file == nil {
		return nil, &diag.Error{Code: "usage", Message: fmt.Sprintf("%d is not an inherited connection", fd), Exit: diag.ExitUsage}
	}
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("take over connection %d: %w", fd, err)
	}
	return conn, nil
}

func metricsListener(c Config) (net.Listener, error) {
	switch {
	case c.MetricsListen != "":
		l, err := net.Listen("tcp", c.MetricsListen)
		if err != nil {
			return nil, fmt.Errorf("offer metrics: %w", err)
		}
		return l, nil
	case c.MetricsFD < 3:
		return nil, nil
	}
	file := os.NewFile(uintptr(c.MetricsFD), "metrics")
	if file == nil {
		return nil, fmt.Errorf("take over listener %d: not open", c.MetricsFD)
	}
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("take over listener %d: %w", c.MetricsFD, err)
	}
	return l, nil
}

// Bounds of the port for metrics, which anybody may ask.
const (
	scrapersAtOne   = 512
	scraperGrace    = 100 * time.Millisecond
	scraperPatience = 500 * time.Millisecond
	scraperReads    = 2 * time.Second // in which an answer is made and taken, when others want the place
	scraperUnread   = 64 << 10        // bytes of answers that the kernel keeps for who does not read them
	scrapeHeaderMax = 5 * time.Second
	scrapeAnswerMax = 10 * time.Second
	scraperIdleMax  = 2 * time.Minute // longer than the intervals at which scrapers come, who keep their connection
)

// serveMetrics serves /metrics until the returned function is called.
func (s *Server) serveMetrics(l net.Listener) (stop func()) {
	metrics := http.NewServeMux()
	metrics.HandleFunc("GET /metrics", s.meter.expose)
	server := &http.Server{
		Handler: crowdHandler(metrics), ConnContext: memberContext, ReadHeaderTimeout: scrapeHeaderMax, ReadTimeout: scrapeAnswerMax, WriteTimeout: scrapeAnswerMax,
		IdleTimeout: scraperIdleMax, MaxHeaderBytes: wire.HeaderBytesMax, ErrorLog: s.log,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		crowd := newCrowd(scrapersAtOne, scraperGrace, scraperPatience, scraperReads)
		_ = server.Serve(countingListener{newCrowdListener(l, crowd, scraperUnread), s.meter})
	}()
	return func() {
		_ = server.Close()
		<-done
	}
}

// at is called wherever an agent could be cut off. The names are those of Failpoints.
func (s *Server) at(name string) { s.options.at(name) }

func (o *Options) at(name string) {
	if o.Failpoint != nil {
		o.Failpoint(name)
	}
}

// Failpoints lists the failpoints of an agent, approximately in order.
func Failpoints() []string {
	return []string{
		"agent.configured", "agent.ready", "agent.hello",
		"agent.order", "agent.admitted", "agent.prepare", "agent.prepared", "agent.answered", "agent.held", "agent.start",
		"agent.run", "agent.interval", "agent.buffered", "agent.stream", "agent.batch", "agent.acknowledge",
		"agent.stop", "agent.ended", "agent.closed", "agent.finished", "agent.remove", "agent.log", "agent.metrics",
	}
}
