package api

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/websocket"
	"k8s.io/client-go/rest"
)

// A tunnel is a WebSocket of the pod's subresource portforward, which the API server passes to the kubelet: each message begins
// with the number of a channel, 0 for data and 1 for errors, and the first message of each repeats the port.
const (
	tunnelProtocol = "v4.channel.k8s.io"
	dataChannel    = 0
	errorChannel   = 1
	tunnelMax      = 30 * time.Second // of making one
	messageMax     = 1 << 20
	tunnelChunk    = 32 << 10
)

// Tunnel connects to a port of a pod through the API server and the pod's node.
func (c *Client) Tunnel(ctx context.Context, pod string, port int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, tunnelMax)
	defer cancel()
	conn, err := c.tunnel(ctx, pod, port)
	if err != nil {
		return nil, fmt.Errorf("forward port %d of pod %q: %w", port, pod, err)
	}
	return conn, nil
}

func (c *Client) tunnel(ctx context.Context, pod string, port int) (net.Conn, error) {
	base, err := c.base()
	if err != nil {
		return nil, err
	}
	at := base.JoinPath("api/v1/namespaces", c.Namespace, "pods", pod, "portforward")
	at.RawQuery = url.Values{"ports": {strconv.Itoa(port)}}.Encode()
	var t *tunnelConn
	err = c.socket(ctx, at, tunnelProtocol, func(socket *websocket.Conn) error {
		socket.PayloadType, socket.MaxPayloadBytes = websocket.BinaryFrame, messageMax
		t = &tunnelConn{socket: socket}
		return t.greet(port)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// streamProtocol is the WebSocket protocol of KubeVirt's streams: messages are the data itself.
const streamProtocol = "plain.kubevirt.io"

// Stream connects to a subresource of KubeVirt that is a stream, such as a port of a VM.
func (c *Client) Stream(ctx context.Context, path string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, tunnelMax)
	defer cancel()
	base, err := c.base()
	if err != nil {
		return nil, err
	}
	var conn net.Conn
	err = c.socket(ctx, base.JoinPath(path), streamProtocol, func(socket *websocket.Conn) error {
		socket.PayloadType = websocket.BinaryFrame
		conn = socket
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	return conn, nil
}

// socket opens a WebSocket, and lets greet begin the conversation.
func (c *Client) socket(ctx context.Context, at *url.URL, protocol string, greet func(*websocket.Conn) error) error {
	base, err := c.base()
	if err != nil {
		return err
	}
	header, err := c.identify(ctx, at)
	if err != nil {
		return err
	}
	plain, err := c.connect(ctx, at)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = plain.Close() })
	defer stop()
	c.calls.Add(1)
	at.Scheme = map[string]string{"https": "wss", "http": "ws"}[at.Scheme]
	origin := *base
	heard := &listening{Conn: plain}
	socket, err := websocket.NewClient(&websocket.Config{
		Location: at, Origin: &origin, Version: websocket.ProtocolVersionHybi13, Protocol: []string{protocol}, Header: header,
	}, heard)
	if err != nil {
		_ = plain.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} else if heard.begin != nil {
			err = fmt.Errorf("%w: %s", err, Words(string(heard.begin)))
		}
		return err
	}
	heard.done = true
	if err := greet(socket); err != nil {
		_ = socket.Close()
		return err
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return nil
}

// listening is a connection that keeps the begin of the answer to its first request, for messages.
type listening struct {
	net.Conn
	begin []byte
	done  bool
}

const beginMax = 1 << 10

func (l *listening) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if !l.done && len(l.begin) < beginMax {
		l.begin = append(l.begin, p[:min(n, beginMax-len(l.begin))]...)
	}
	return n, err
}

// identify returns the headers by which the library would identify this program.
func (c *Client) identify(ctx context.Context, at *url.URL) (http.Header, error) {
	var header http.Header
	own := rest.CopyConfig(c.config)
	own.WrapTransport = nil
	wrapped, err := rest.HTTPWrappersForConfig(own, roundTrip(func(r *http.Request) (*http.Response, error) {
		header = r.Header.Clone()
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
	}))
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := wrapped.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	_ = answer.Body.Close()
	return header, nil
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (c *Client) connect(ctx context.Context, at *url.URL) (net.Conn, error) {
	port := at.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[at.Scheme]
	}
	address := net.JoinHostPort(at.Hostname(), port)
	if at.Scheme == "http" {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}
	secure, err := c.secure()
	if err != nil {
		return nil, err
	}
	d := tls.Dialer{Config: secure}
	return d.DialContext(ctx, "tcp", address)
}

// tunnelConn is the data of a tunnel.
type tunnelConn struct {
	socket *websocket.Conn

	reading sync.Mutex
	rest    []byte
	failed  error

	writing sync.Mutex
}

// greet reads the first messages of both channels.
func (t *tunnelConn) greet(port int) error {
	for range 2 {
		message, err := t.next()
		if err != nil {
			return err
		}
		if len(message) != 3 || int(binary.LittleEndian.Uint16(message[1:])) != port {
			return errors.New("the kubelet speaks another protocol")
		}
	}
	return nil
}

func (t *tunnelConn) next() ([]byte, error) {
	var message []byte
	if err := websocket.Message.Receive(t.socket, &message); err != nil {
		return nil, err
	}
	if len(message) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return message, nil
}

func (t *tunnelConn) Read(p []byte) (int, error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	for len(t.rest) == 0 {
		if t.failed != nil {
			return 0, t.failed
		}
		message, err := t.next()
		switch {
		case err != nil:
			t.failed = err
		case message[0] == errorChannel && len(message) > 1:
			t.failed = errors.New(Words(string(message[1:])))
		case message[0] == dataChannel:
			t.rest = message[1:]
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

func (t *tunnelConn) Write(p []byte) (int, error) {
	t.writing.Lock()
	defer t.writing.Unlock()
	written := 0
	for written < len(p) {
		part := p[written:min(len(p), written+tunnelChunk)]
		message := append(make([]byte, 0, len(part)+1), dataChannel)
		if err := websocket.Message.Send(t.socket, append(message, part...)); err != nil {
			return written, err
		}
		written += len(part)
	}
	return written, nil
}

func (t *tunnelConn) Close() error                        { return t.socket.Close() }
func (t *tunnelConn) LocalAddr() net.Addr                 { return t.socket.LocalAddr() }
func (t *tunnelConn) RemoteAddr() net.Addr                { return t.socket.RemoteAddr() }
func (t *tunnelConn) SetDeadline(at time.Time) error      { return t.socket.SetDeadline(at) }
func (t *tunnelConn) SetReadDeadline(at time.Time) error  { return t.socket.SetReadDeadline(at) }
func (t *tunnelConn) SetWriteDeadline(at time.Time) error { return t.socket.SetWriteDeadline(at) }
