package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// serveHTTP connects a client to whatever handler says it is an agent.
func serveHTTP(t *testing.T, handler http.HandlerFunc, o ClientOptions) *Client {
	t.Helper()
	near, far := net.Pipe()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: protocols}
	listener := newOneConn(far)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	c := NewClient(near, o)
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
			reply(w, http.StatusCreated, TaskHealth{})
		case strings.HasSuffix(r.URL.Path, "/intervals"):
			_, _ = io.WriteString(w, body)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}
}

func encode(t *testing.T, r record) string {
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
		return encode(t, record{Interval: &iv})
	}
	changed := func(change func(*interval.Interval)) string {
		iv := intervalOf(workload(), 0, false)
		change(&iv)
		return encode(t, record{Interval: &iv})
	}
	classes := map[string]uint64{}
	for i := range errorClassesMax + 1 {
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
		"lost for ever":               `{"lost":{"from":0,"through":9223372036854775807}}` + "\n",
		"another workload":            changed(func(iv *interval.Interval) { iv.Workload = "other" }),
		"another VM":                  changed(func(iv *interval.Interval) { iv.VM = "other" }),
		"another device":              changed(func(iv *interval.Interval) { iv.Devices = map[string]interval.DeviceTraffic{"/dev/sda": {}} }),
		"negative length":             changed(func(iv *interval.Interval) { iv.LengthNanos = -1 }),
		"endless":                     changed(func(iv *interval.Interval) { iv.LengthNanos = 1<<63 - 1 }),
		"before all time":             changed(func(iv *interval.Interval) { iv.StartNanos = -1 << 63 }),
		"time overflows":              changed(func(iv *interval.Interval) { iv.StartNanos, iv.LengthNanos = 1<<62, 1<<62 }),
		"histogram that is none":      `{"interval":{"dirs":[{"service":{"n":5,"b":[1,2,3]}},{},{}]}}` + "\n",
		"histogram with far bucket":   `{"interval":{"dirs":[{"service":{"n":1,"b":[99999999999,1]}},{},{}]}}` + "\n",
		"too many classes of errors":  changed(func(iv *interval.Interval) { iv.Directions[0].Errors = classes }),
		"deep nesting":                strings.Repeat("[", 20_000) + "\n",
		"a line without end":          strings.Repeat("x", lineBytesMax+1),
		"a number that is a sequence": `{"interval":{"seq":"0"}}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			err := serveHTTP(t, hostileAgent(body), ClientOptions{}).Run(t.Context(), workload(), newCollector())
			var told *diag.Error
			if !errors.As(err, &told) || told.Code != codeGarbled || errors.Is(err, load.ErrLost) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A stream that ends without its end record was cut off, however whole its last line looks.
func TestStreamThatBreaksOff(t *testing.T) {
	iv := intervalOf(workload(), 0, true)
	whole := encode(t, record{Interval: &iv})
	for _, body := range []string{"", whole, whole + `{"end":{"next":1}}`, whole[:len(whole)/2]} {
		err := serveHTTP(t, hostileAgent(body), ClientOptions{}).Run(t.Context(), workload(), newCollector())
		if !errors.Is(err, load.ErrLost) {
			t.Errorf("after %d bytes: got %v", len(body), err)
		}
	}
}

func TestGarbledReplies(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte("["), 2*replyBytesMax))
		},
		"refusal without a reason": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"refusal that is no error": func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusTeapot, []int{1}) },
	} {
		t.Run(name, func(t *testing.T) {
			c := serveHTTP(t, handler, ClientOptions{})
			if _, err := c.Hello(t.Context()); diag.ExitCode(err) != diag.ExitUnavailable {
				t.Errorf("hello: got %v", err)
			}
		})
	}
	older := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, Hello{Protocol: ProtocolVersion + 1, VM: "DB-0001"})
	}, ClientOptions{})
	if _, err := older.Hello(t.Context()); diag.ExitCode(err) != diag.ExitUnavailable || !strings.Contains(err.Error(), "protocol 3") {
		t.Errorf("another version: got %v", err)
	}
}

// An exit code that a hostile agent claims cannot turn a failure into success.
func TestHostileExitCode(t *testing.T) {
	for _, exit := range []int{0, -1, 256, 1 << 20} {
		err := (&wireError{Wire: diag.Wire{Message: "no", Exit: exit}}).toError()
		if diag.ExitCode(err) != diag.ExitInternal {
			t.Errorf("exit code %d became %d", exit, diag.ExitCode(err))
		}
	}
}

// What is no agent at all, on the other end of the connection.
func TestPeerThatSpeaksSomethingElse(t *testing.T) {
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		go func() { _, _ = io.Copy(io.Discard, far) }()
		_, _ = io.WriteString(far, "SSH-2.0-OpenSSH_9.2\r\nHTTP/1.1 200 OK\r\n\r\n")
	}()
	c := NewClient(near, ClientOptions{})
	if _, err := c.Hello(t.Context()); !errors.Is(err, load.ErrLost) {
		t.Errorf("got %v", err)
	}
	_ = c.Close()
	_ = far.Close()
	<-done
}

// The server against controllers that are none.
func TestServerAgainstGarbage(t *testing.T) {
	s := newTestServer(t, newScripted(), nil)
	for _, garbage := range []string{
		"", "GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff", 1<<16), strings.Repeat("x", 1<<20),
	} {
		near, far := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = s.ServeConn(context.Background(), far)
		}()
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(io.Discard, near)
		}()
		_, _ = io.WriteString(near, garbage)
		_ = near.Close()
		<-read
		<-served
	}
	p := connect(t, s, ClientOptions{})
	if _, err := p.client.Hello(t.Context()); err != nil {
		t.Errorf("the server does not answer any more: %v", err)
	}
}

func TestServerRefusesBadRequests(t *testing.T) {
	p := connect(t, newTestServer(t, newScripted(), nil), ClientOptions{})
	id := strings.Repeat("0a", 16)
	for _, tt := range []struct{ method, path, body string }{
		{http.MethodPut, "/v1/workloads/short", "{}"},
		{http.MethodPut, "/v1/workloads/" + strings.Repeat("Z", 32), "{}"},
		{http.MethodPut, "/v1/workloads/" + id, "no JSON"},
		{http.MethodPut, "/v1/workloads/" + id, `{"generator":"unknown"}`},
		{http.MethodPut, "/v1/workloads/" + id, `{"generator":"scripted","config":"` + strings.Repeat("x", workloadBytesMax) + `"}`},
		{http.MethodPut, "/v1/workloads/" + id, `{"generator":"scripted","devices":[` + strings.Repeat("{},", devicesMax) + `{}]}`},
		{http.MethodGet, "/v1/workloads/" + id + "/intervals?from=0", ""},
		{http.MethodGet, "/v1/workloads/" + id + "/intervals?from=-1", ""},
		{http.MethodGet, "/v1/workloads/" + id + "/intervals", ""},
		{http.MethodPost, "/v1/workloads/" + id + "/acknowledge?through=x", ""},
		{http.MethodPost, "/v1/workloads/" + id + "/stop", ""},
		{http.MethodPost, "/v1/workloads/" + id + "/start?at_uptime_ns=1", ""},
		{http.MethodPost, "/v1/workloads/" + id + "/start", ""},
		{http.MethodPost, "/v1/workloads/" + id + "/start?at_uptime_ns=9223372036854775807", ""},
		{http.MethodPut, "/v1/workloads/" + id + "?zero_uptime_ns=x", "{}"},
		{http.MethodPut, "/v1/workloads/" + id + "?zero_uptime_ns=-9223372036854775808", "{}"},
		{http.MethodPost, "/v1/hello", ""},
		{http.MethodGet, "/v1/nothing", ""},
		{http.MethodGet, "/../../etc/passwd", ""},
	} {
		if err := p.client.call(t.Context(), request{tt.method, tt.path, []byte(tt.body)}, nil); err == nil {
			t.Errorf("%s %s was accepted", tt.method, tt.path)
		}
	}
	if h := p.server.health(); len(h.Workloads) != 0 {
		t.Errorf("a refused request left %+v", h.Workloads)
	}
}

func TestTooManyWorkloads(t *testing.T) {
	g := newScripted()
	s := newTestServer(t, g, nil)
	ctx, cancel := context.WithCancel(t.Context())
	p := connect(t, s, ClientOptions{})
	done := make(chan error, tasksMax)
	for range tasksMax {
		go func() { done <- p.client.Run(ctx, workload(), newCollector()) }()
		<-g.prepared
	}
	if err := p.client.Run(t.Context(), workload(), newCollector()); diag.ExitCode(err) != diag.ExitUnavailable {
		t.Errorf("got %v", err)
	}
	cancel()
	for range tasksMax {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	// What has ended makes room, also when nobody asked for it to be forgotten.
	for range tasksMax {
		id := randomID()
		if err := admit(s, id); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.tasks[id].cancel()
		s.mu.Unlock()
	}
	waitUntil(t, func() bool { return !s.health().Workloads[0].Running })
	if err := admit(s, randomID()); err != nil {
		t.Errorf("an ended workload still takes its place: %v", err)
	}
}

func admit(s *Server, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.admit(id, order{work: workload()})
	return err
}

func TestClosedServerRefuses(t *testing.T) {
	s := newTestServer(t, newScripted(), nil)
	p := connect(t, s, ClientOptions{})
	s.Close()
	if err := p.client.Run(t.Context(), workload(), newCollector()); diag.ExitCode(err) != diag.ExitUnavailable {
		t.Errorf("got %v", err)
	}
}

func TestReadLine(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, tt := range map[string]struct {
		in   string
		want []string
		err  error
	}{
		"whole":    {"a\nb\n", []string{"a", "b"}, io.ErrUnexpectedEOF},
		"cut off":  {"a\nb", []string{"a"}, io.ErrUnexpectedEOF},
		"empty":    {"\n\n", []string{"", ""}, io.ErrUnexpectedEOF},
		"at limit": {long[:63] + "\n", []string{long[:63]}, io.ErrUnexpectedEOF},
		"too long": {long + "\n", nil, errLineTooLong},
		"no end":   {long, nil, errLineTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			r := bufio.NewReaderSize(strings.NewReader(tt.in), 16)
			for _, want := range tt.want {
				got, err := readLine(r, 64)
				if err != nil || string(got) != want {
					t.Fatalf("got %q, %v, want %q", got, err, want)
				}
			}
			if _, err := readLine(r, 64); !errors.Is(err, tt.err) {
				t.Errorf("got %v, want %v", err, tt.err)
			}
		})
	}
}

// Whatever decodeRecord accepts, everything behind it can handle, and encodes to the same again.
func FuzzDecodeRecord(f *testing.F) {
	iv := intervalOf(workload(), 3, true)
	iv.Devices = map[string]interval.DeviceTraffic{"/dev/sdb": {{Operations: 1, Bytes: 2, ServiceNanos: 3}}}
	for _, r := range []record{
		{Interval: &iv}, {Lost: &lostRange{From: 1, Through: 2}}, {End: &endRecord{Next: 4}},
		{End: &endRecord{Next: 4, Error: &wireError{Wire: diag.Wire{Message: "m", Exit: 65}}}},
	} {
		text, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(text[:len(text)/2])
	}
	f.Add([]byte(`{"interval":{"dirs":[{"service":{"n":1,"min":1,"max":1,"b":[2,1]}},{},{}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decodeRecord(text)
		if err != nil {
			return
		}
		if r.Interval != nil {
			newMeter(Options{}).add(r.Interval, workload().Devices)
			_ = r.Interval.Totals()
			_ = r.Interval.EndNanos()
		}
		if r.End != nil {
			if err := r.End.Error.toError(); err != nil && diag.ExitCode(err) == diag.ExitPass {
				t.Error("an error became success")
			}
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		if _, err := decodeRecord(again); err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
	})
}
