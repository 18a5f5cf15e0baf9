// Package rpc sends requests to a program of Bragg on a host, over the standard input and output with which ssh started it.
//
//	controller: Dial ──ssh──▶ program ──▶ Join, Serve     Client.Open ──▶ stream ──▶ handler
//
// Each request has its own stream (yamux), which begins with one line of JSON, the request. The rest depends on the
// operation: one line as a reply, lines in both directions, or plain bytes. The connection ends on both sides if the other
// side is silent for too long, and all its streams end with it. There is no state between connections, and no automatic
// reconnect. The callers define the meaning of requests: packages hostvm and iohosts.
package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/braggdev/bragg/internal/sshlink"
)

// Bounds.
const (
	messageBytesMax = 4 << 20 // of a request or a reply
	streamsMax      = 1024    // of one connection, including the connections to agents
	backlogMax      = 256     // streams that were opened and not accepted yet
	helloPatience   = 30 * time.Second
	keepAliveEvery  = 15 * time.Second
)

// settings are those of the multiplexer. Each side sends keep-alives and closes the connection if the other does not answer
// within silence.
func settings(silence time.Duration) *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog, c.LogOutput = backlogMax, io.Discard
	c.KeepAliveInterval, c.ConnectionWriteTimeout = min(keepAliveEvery, silence/2), silence
	return c
}

// Client is the controller's half of a connection. Its methods may be called from several goroutines.
type Client struct {
	session *yamux.Session
	link    *sshlink.Link // nil without ssh
	silence time.Duration
}

// Dial starts ssh and the program on a host. The caller must call Close; ctx bounds the start only.
func Dial(ctx context.Context, h sshlink.Host, r *sshlink.Remote, silence time.Duration) (*Client, error) {
	link, err := sshlink.Start(ctx, h, r)
	if err != nil {
		return nil, err
	}
	c, err := New(link, silence)
	if err != nil {
		return nil, link.Error(err)
	}
	c.link = link
	return c, nil
}

// New communicates over conn, which it owns from then on.
func New(conn io.ReadWriteCloser, silence time.Duration) (*Client, error) {
	session, err := yamux.Client(conn, settings(silence))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &Client{session: session, silence: silence}, nil
}

// Gone is closed when the connection has ended.
func (c *Client) Gone() <-chan struct{} { return c.session.CloseChan() }

// Close ends the connection.
func (c *Client) Close() error { return c.session.Close() }

// Why adds to the error of a request or stream of Dial's connection what users need to know: the host, ssh's output, and
// the reason for the end of the connection if err is only that it ended.
func (c *Client) Why(err error) error {
	if errors.Is(err, ErrLost) || sshlink.Broken(err) {
		_ = c.Close() // waits until ssh has ended, and has printed the reason
		err = errors.New("the connection broke")
		if _, ended := c.session.AcceptStream(); errors.Is(ended, yamux.ErrKeepAliveTimeout) {
			err = fmt.Errorf("no message from it for %s", c.silence)
		}
	}
	return c.link.Error(err)
}

// ErrLost says that the connection ended before the reply: the request may or may not have been carried out.
var ErrLost = errors.New("the connection to the host was lost")

// Open sends a request and returns its stream.
func (c *Client) Open(ctx context.Context, request any) (net.Conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	stream, err := c.session.OpenStream()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	if err := WriteLine(stream, request); err != nil {
		_ = stream.Close()
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	return stream, nil
}

// Answer reads the next line of a stream into reply. If ctx ends first, the stream can no longer be read.
func Answer(ctx context.Context, stream net.Conn, reply any) error {
	stop := context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	text, err := readLine(stream)
	if err == nil {
		return json.Unmarshal(text, reply)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// WriteLine writes v as one line, in one piece: several goroutines may write to a stream.
func WriteLine(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(text) >= messageBytesMax {
		return fmt.Errorf("a message of %d bytes, at most %d are sent", len(text), messageBytesMax)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// readLine reads one line byte by byte, so that it does not consume the data after it.
func readLine(r io.Reader) ([]byte, error) {
	var text []byte
	var one [1]byte
	for {
		if _, err := io.ReadFull(r, one[:]); err != nil {
			return nil, err
		}
		if one[0] == '\n' {
			return text, nil
		}
		if text = append(text, one[0]); len(text) >= messageBytesMax {
			return nil, errors.New("read message: it is too long")
		}
	}
}
