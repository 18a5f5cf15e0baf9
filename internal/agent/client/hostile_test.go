package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/stat"
)

// oneConn is a listener of one connection, and that connection.
type oneConn struct {
	net.Conn
	next   chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (o *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-o.next:
		return c, nil
	case <-o.closed:
		return nil, net.ErrClosed
	}
}

func (o *oneConn) Close() error {
	o.once.Do(func() { close(o.closed) })
	return o.Conn.Close()
}

func (o *oneConn) Addr() net.Addr { return o.LocalAddr() }

func reply(w http.ResponseWriter, status int, body any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func workload() load.Workload {
	return load.Workload{Name: "OLTP", Group: "DB", VM: "DB-0001", Instance: 1, Devices: []load.Device{{Name: "/dev/sdb", Path: "disk", SizeBytes: 1 << 20}}}
}

func intervalOf(w load.Workload, sequence int64, final bool) interval.Interval {
	iv := interval.Interval{Workload: w.Name, Group: w.Group, VM: w.VM, Instance: w.Instance, Sequence: sequence,
		StartNanos: sequence * 1e9, LengthNanos: 1e9, Final: final}
	h := &stat.Histogram{}
	h.RecordN(50_000, 10)
	iv.Directions[interval.Read] = interval.Traffic{Operations: 10, Bytes: 40960, Service: h}
	return iv
}

var discard = load.SinkFunc(func(interval.Interval) {})

// serveHTTP connects a client to whatever handler says it is an agent.
func serveHTTP(t *testing.T, handler http.HandlerFunc, o Options) *Client {
	t.Helper()
	near, far := net.Pipe()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: protocols}
	listener := &oneConn{Conn: far, next: make(chan net.Conn, 1), closed: make(chan struct{})}
	listener.next <- listener
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	c := New(near, o)
	t.Cleanup(func() {
		_ = c.Close()
		_ = server.Close()
		_ = listener.Close()
		<-done
	})
	return c
}

// hostileAgent accepts every workload and then streams body.
func hostileAgent(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut:
			reply(w, http.StatusCreated, wire.TaskHealth{})
		case strings.HasSuffix(r.URL.Path, "/intervals"):
			_, _ = io.WriteString(w, body)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}
}

func encode(t *testing.T, r wire.Record) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func TestGarbledStreams(t *testing.T) {
	good := func(sequence int64) string {
		iv := intervalOf(workload(), sequence, false)
		return encode(t, wire.Record{Interval: &iv})
	}
	changed := func(change func(*interval.Interval)) string {
		iv := intervalOf(workload(), 0, false)
		change(&iv)
		return encode(t, wire.Record{Interval: &iv})
	}
	classes := map[string]uint64{}
	for i := range wire.ErrorClassesMax + 1 {
		classes[fmt.Sprint(i)] = 1
	}
	for name, body := range map[string]string{
		"no JSON":                     "hello\n",
		"binary":                      "\x00\x01\x02\xff\n",
		"nothing in it":               "{}\n",
		"two at once":                 `{"lost":{"from":0,"through":1},"end":{"next":2}}` + "\n",
		"repeated":                    good(0) + good(0),
		"jumped":                      good(0) + good(2),
		"begins late":                 good(1),
		"end too early":               good(0) + `{"end":{"next":2}}` + "\n",
		"end too late":                good(0) + `{"end":{"next":0}}` + "\n",
		"negative end":                `{"end":{"next":-1}}` + "\n",
		"lost backwards":              `{"lost":{"from":5,"through":4}}` + "\n",
		"lost elsewhere":              `{"lost":{"from":3,"through":4}}` + "\n",
		"lost forever":                `{"lost":{"from":0,"through":9223372036854775807}}` + "\n",
		"another workload":            changed(func(iv *interval.Interval) { iv.Workload = "other" }),
		"another VM":                  changed(func(iv *interval.Interval) { iv.VM = "other" }),
		"another device":              changed(func(iv *interval.Interval) { iv.Devices = map[string]interval.DeviceTraffic{"/dev/sda": {}} }),
		"negative length":             changed(func(iv *interval.Interval) { iv.LengthNanos = -1 }),
		"endless":                     changed(func(iv *interval.Interval) { iv.LengthNanos = 1<<63 - 1 }),
		"before all time":             changed(func(iv *interval.Interval) { iv.StartNanos = -1 << 63 }),
		"time overflows":              changed(func(iv *interval.Interval) { iv.StartNanos, iv.LengthNanos = 1<<62, 1<<62 }),
		"histogram that is none":      `{"interval":{"dirs":[{"service":{"n":5,"b":[1,2,3]}},{},{}]}}` + "\n",
		"histogram with far bucket":   `{"interval":{"dirs":[{"service":{"n":1,"b":[99999999999,1]}},{},{}]}}` + "\n",
		"too many gauges":             changed(func(iv *interval.Interval) { iv.Gauges = make([]float64, interval.GaugesMax+1) }),
		"too many classes of errors":  changed(func(iv *interval.Interval) { iv.Directions[0].Errors = classes }),
		"deep nesting":                strings.Repeat("[", 20_000) + "\n",
		"a line without end":          strings.Repeat("x", wire.LineBytesMax+1),
		"a number that is a sequence": `{"interval":{"seq":"0"}}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			err := serveHTTP(t, hostileAgent(body), Options{}).Run(t.Context(), workload(), discard)
			var userErr *diag.Error
			if !errors.As(err, &userErr) || userErr.Code != codeGarbled || errors.Is(err, load.ErrLost) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A stream that ends without its end record was cut off, however whole its last line looks.
func TestStreamThatBreaksOff(t *testing.T) {
	iv := intervalOf(workload(), 0, true)
	whole := encode(t, wire.Record{Interval: &iv})
	for _, body := range []string{"", whole, whole + `{"end":{"next":1}}`, whole[:len(whole)/2]} {
		err := serveHTTP(t, hostileAgent(body), Options{}).Run(t.Context(), workload(), discard)
		if !errors.Is(err, load.ErrLost) {
			t.Errorf("after %d bytes: got %v", len(body), err)
		}
	}
}

func TestGarbledReplies(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte("["), 2*wire.ReplyBytesMax))
		},
		"refusal without a reason": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"refusal without an error": func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusTeapot, []int{1}) },
	} {
		t.Run(name, func(t *testing.T) {
			c := serveHTTP(t, handler, Options{})
			if _, err := c.Hello(t.Context()); diag.ExitCode(err) != diag.ExitUnavailable {
				t.Errorf("hello: got %v", err)
			}
		})
	}
	older := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, wire.Hello{Protocol: wire.Version + 1, VM: "DB-0001"})
	}, Options{})
	if _, err := older.Hello(t.Context()); diag.ExitCode(err) != diag.ExitUnavailable || !strings.Contains(err.Error(), "protocol 3") {
		t.Errorf("another version: got %v", err)
	}
}

// The peer is not an agent at all.
func TestPeerThatSpeaksSomethingElse(t *testing.T) {
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		go func() { _, _ = io.Copy(io.Discard, far) }()
		_, _ = io.WriteString(far, "SSH-2.0-OpenSSH_9.2\r\nHTTP/1.1 200 OK\r\n\r\n")
	}()
	c := New(near, Options{})
	if _, err := c.Hello(t.Context()); !errors.Is(err, load.ErrLost) {
		t.Errorf("got %v", err)
	}
	_ = c.Close()
	_ = far.Close()
	<-done
}
