package program

import (
	"context"
	"fmt"
	"net"

	"github.com/braggdev/bragg/internal/load"
)

// Serve runs the serving end of a load until ctx ends: nothing is measured there. It fails if one of its processes has ended before
// that; name is what its error calls them. The caller ends the processes.
func Serve(ctx context.Context, w load.Workload, sink load.Sink, name string, processes ...<-chan struct{}) error {
	axis := NewAxis(w.ZeroUnixNanos)
	out := &Recorder{Workload: w, Sink: sink}
	out.Begin(axis.Now())
	defer func() { out.Finish(axis.Now()) }()
	ended := make(chan struct{}, len(processes))
	for _, p := range processes {
		go func() {
			<-p
			ended <- struct{}{}
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-ended:
		return fmt.Errorf("a server of %s ended before its clients", name)
	}
}

// FreePort finds a port that is free on the address of this VM, or on all addresses if that one is a name, or of a router before it.
func FreePort(address string) (string, int, error) {
	if net.ParseIP(address) == nil {
		address = ""
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil && address != "" {
		address = ""
		l, err = net.Listen("tcp", ":0")
	}
	if err != nil {
		return "", 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return address, l.Addr().(*net.TCPAddr).Port, nil
}
