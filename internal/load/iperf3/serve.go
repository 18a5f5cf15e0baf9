package iperf3

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// server is the serving end of a load: one process for each client, because a server of iperf3 has one test at a time.
type server struct {
	end
	processes []*program.Process
	ports     []int
}

var (
	_ load.Describer = (*server)(nil)
	_ load.Server    = (*server)(nil)
	_ load.Teller    = (*server)(nil)
)

const (
	listenWithin = 10 * time.Second
	portTries    = 8 // another program may take a port before the server does
)

// Ports returns where the servers listen; see load.Server.
func (s *server) Ports() []int { return s.ports }

// listen starts the servers and waits until they listen.
func (s *server) listen(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listenWithin)
	defer cancel()
	for range s.workload.Remote.Peers {
		var err error
		for range portTries {
			if err = s.listenOnce(ctx); err == nil || ctx.Err() != nil {
				break
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *server) listenOnce(ctx context.Context) error {
	address, port, err := program.FreePort(s.workload.Remote.Address)
	if err != nil {
		return err
	}
	listening := &watch{text: []byte("Server listening"), found: make(chan struct{})}
	command := s.config.serve(s.tool, address, port)
	last := program.NewTail(nil)
	command.Stdout, command.Stderr = io.MultiWriter(listening, s.said), io.MultiWriter(last, s.said)
	fmt.Fprintf(s.said, "$ %s\n", command)
	p, err := command.Start()
	if err != nil {
		return fmt.Errorf("start iperf3: %w", err)
	}
	select {
	case <-listening.found:
		s.processes, s.ports = append(s.processes, p), append(s.ports, port)
		return nil
	case <-p.Done():
		return fmt.Errorf("iperf3 does not listen on %s%s", net.JoinHostPort(address, fmt.Sprint(port)), last.Quoted())
	case <-ctx.Done():
		p.Kill()
		<-p.Done()
		return fmt.Errorf("iperf3 does not listen on %s within %v%s", net.JoinHostPort(address, fmt.Sprint(port)), listenWithin, last.Quoted())
	}
}

// watch closes a channel when a text was written.
type watch struct {
	text  []byte
	seen  []byte
	found chan struct{}
}

func (w *watch) Write(p []byte) (int, error) {
	if w.text != nil {
		w.seen = append(w.seen, p[:min(len(p), 4096)]...)
		if bytes.Contains(w.seen, w.text) {
			close(w.found)
			w.text, w.seen = nil, nil
		} else if len(w.seen) > 64<<10 {
			w.seen = w.seen[32<<10:]
		}
	}
	return len(p), nil
}

// Run waits until the servers are stopped; they are not measured.
func (s *server) Run(ctx context.Context, sink load.Sink) error {
	defer func() { _ = s.Close() }()
	var ended []<-chan struct{}
	for _, p := range s.processes {
		ended = append(ended, p.Done())
	}
	return program.Serve(ctx, s.workload, sink, Name, ended...)
}

// Outputs has what the servers printed; see load.Teller.
func (s *server) Outputs() []load.Output {
	return []load.Output{{Name: "iperf3-server.txt", Text: s.said.String()}}
}

// Close ends the servers.
func (s *server) Close() error {
	for _, p := range s.processes {
		p.Kill()
		<-p.Done()
	}
	s.processes = nil
	return nil
}
