package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/braggdev/bragg/internal/diag"
)

const silence = 30 * time.Second

type request struct {
	Operation string `json:"operation"`
	Words     string `json:"words"`
}

type reply struct {
	Error *diag.Wire `json:"error"`
	Words string     `json:"words"`
}

// When all streams are taken, by connections to agents as a rule, a call is answered all the same.
func TestTooManyStreams(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	session, err := yamux.Server(there, settings(silence))
	if err != nil {
		t.Fatal(err)
	}
	const most = 2
	var streams sync.WaitGroup
	ended := make(chan struct{})
	go func() {
		accept(t.Context(), session, &streams, nil, most)
		close(ended)
	}()
	c, err := New(here, silence)
	if err != nil {
		t.Fatal(err)
	}
	for range most {
		if _, err := c.session.OpenStream(); err != nil { // it says nothing yet, and is waited for
			t.Fatal(err)
		}
	}
	// Larger than what a stream takes without being read.
	stream, err := c.Open(t.Context(), request{"create", strings.Repeat("x", 1<<20)})
	if err != nil {
		t.Fatal(err)
	}
	var r reply
	if err := Answer(t.Context(), stream, &r); err != nil || r.Error == nil || r.Error.Code != "host-busy" || !strings.HasPrefix(r.Error.Message, "create: ") {
		t.Errorf("got %+v, %v", r, err)
	}
	if err := errors.Join(c.Close(), session.Close()); err != nil {
		t.Error(err)
	}
	<-ended
	streams.Wait()
}

// A program whose controller is frozen ends the connection, though a read of its input never returns.
func TestFrozenControllerEndsTheConnection(t *testing.T) {
	t.Parallel()
	in, never := io.Pipe()
	defer never.Close()
	served := make(chan error)
	go func() {
		served <- Serve(t.Context(), Join(in, io.Discard), time.Second, func(context.Context, []byte, net.Conn) {})
	}()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits for a controller that says nothing")
	}
}
