package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/braggdev/bragg/internal/diag"
)

// Handler executes one request, and writes the result to its stream. The stream is closed when it returns; ctx ends with
// the connection.
type Handler func(ctx context.Context, request []byte, stream net.Conn)

// Serve serves the streams of one connection until it ends (nil) or ctx does, and waits for their handlers.
func Serve(ctx context.Context, conn io.ReadWriteCloser, silence time.Duration, h Handler) error {
	session, err := yamux.Server(conn, settings(silence))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	var streams sync.WaitGroup
	accept(ctx, session, &streams, h, streamsMax)
	stop()
	cancel()
	_ = session.Close()
	streams.Wait()
	return nil
}

// accept serves streams until the connection ends, at most streamsMax at the same time; further ones are refused with an
// error. Streams to agents last as long as a run, so that waiting for one of them to end would block everything.
func accept(ctx context.Context, session *yamux.Session, streams *sync.WaitGroup, h Handler, streamsMax int) {
	slots, refusals := make(chan struct{}, streamsMax), make(chan struct{}, backlogMax)
	for {
		stream, err := session.AcceptStream()
		if err != nil {
			return
		}
		serve, turn := h, slots
		select {
		case slots <- struct{}{}:
		default:
			serve, turn = refuse, refusals
			select {
			case refusals <- struct{}{}:
			default:
				_ = stream.Close()
				continue
			}
		}
		streams.Go(func() {
			defer func() { <-turn }()
			defer stream.Close()
			_ = stream.SetReadDeadline(time.Now().Add(helloPatience))
			request, err := readLine(stream)
			if err != nil {
				return
			}
			_ = stream.SetReadDeadline(time.Time{})
			serve(ctx, request, stream)
		})
	}
}

// refuse answers a request beyond the limit of streams.
func refuse(_ context.Context, request []byte, stream net.Conn) {
	var r struct {
		Operation string `json:"operation"`
	}
	_ = json.Unmarshal(request, &r) // its content does not matter
	_ = WriteLine(stream, map[string]diag.Wire{"error": diag.ToWire(&diag.Error{
		Code: "host-busy", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("%s: more than %d operations and connections to agents at the same time", r.Operation, streamsMax),
		Hint: "spread the VMs over more hosts",
	})})
}

// Join combines a program's input and output into one connection. It ends with the input. Close does not wait for reads and
// writes: on standard streams they cannot be interrupted, and block while the other end is frozen.
func Join(in io.Reader, out io.Writer) io.ReadWriteCloser {
	here, there := net.Pipe()
	carry := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		_ = there.Close()
	}
	go carry(there, in)
	go carry(out, there)
	return here
}
