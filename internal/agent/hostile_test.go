package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
)

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
	p := connect(t, s, client.Options{})
	if _, err := p.client.Hello(t.Context()); err != nil {
		t.Errorf("the server does not answer any more: %v", err)
	}
}

// ask makes one request of the first lease holder, without a client, and returns the refusal.
func ask(s *Server, method, path, body string) error {
	r := httptest.NewRequest(method, "http://agent"+path, strings.NewReader(body))
	r.Header.Set(wire.FenceHeader, "0")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if w.Code >= http.StatusMultipleChoices {
		return fmt.Errorf("status %d: %s", w.Code, w.Body)
	}
	return nil
}

func TestServerRefusesBadRequests(t *testing.T) {
	p := &pair{server: newTestServer(t, newScripted(), nil)}
	id := strings.Repeat("0a", 16)
	for _, tt := range []struct{ method, path, body string }{
		{http.MethodPut, "/v1/workloads/short", "{}"},
		{http.MethodPut, "/v1/workloads/" + strings.Repeat("Z", 32), "{}"},
		{http.MethodPut, "/v1/workloads/" + id, "no JSON"},
		{http.MethodPut, "/v1/workloads/" + id, `{"generator":"unknown"}`},
		{http.MethodPut, "/v1/workloads/" + id, `{"generator":"scripted","config":"` + strings.Repeat("x", workloadBytesMax) + `"}`},
		{http.MethodPut, "/v1/workloads/" + id, `{"generator":"scripted","devices":[` + strings.Repeat("{},", wire.DevicesMax) + `{}]}`},
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
		if err := ask(p.server, tt.method, tt.path, tt.body); err == nil {
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
	p := connect(t, s, client.Options{})
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
	// Ended tasks make room, even without a request to forget them.
	for range tasksMax {
		id := wire.NewID()
		if err := admit(s, id); err != nil {
			t.Fatal(err)
		}
		s.workloads.find(id).cancel()
	}
	waitUntil(t, func() bool { return !s.health().Workloads[0].Running })
	if err := admit(s, wire.NewID()); err != nil {
		t.Errorf("an ended workload still takes its place: %v", err)
	}
}

func admit(s *Server, id string) error {
	s.workloads.mu.Lock()
	defer s.workloads.mu.Unlock()
	_, err := s.workloads.admit(id, order{work: workload()})
	return err
}

func TestClosedServerRefuses(t *testing.T) {
	s := newTestServer(t, newScripted(), nil)
	p := connect(t, s, client.Options{})
	s.Close()
	if err := p.client.Run(t.Context(), workload(), newCollector()); diag.ExitCode(err) != diag.ExitUnavailable {
		t.Errorf("got %v", err)
	}
}

// Whatever wire.Decode accepts, everything behind it can handle, and encodes to the same again.
func FuzzDecodeRecord(f *testing.F) {
	iv := intervalOf(workload(), 3, true)
	iv.Devices = map[string]interval.DeviceTraffic{"/dev/sdb": {{Operations: 1, Bytes: 2, ServiceNanos: 3}}}
	for _, r := range []wire.Record{
		{Interval: &iv}, {Lost: &wire.LostRange{From: 1, Through: 2}}, {End: &wire.End{Next: 4}},
		{End: &wire.End{Next: 4, Error: &wire.Error{Wire: diag.Wire{Message: "m", Exit: 65}}}},
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
		r, err := wire.Decode(text)
		if err != nil {
			return
		}
		if r.Interval != nil {
			newMeter(Options{}, "", time.Now()).add(r.Interval, workload().Devices)
			_ = r.Interval.Totals()
			_ = r.Interval.EndNanos()
		}
		if r.End != nil {
			if err := r.End.Error.Err(); err != nil && diag.ExitCode(err) == diag.ExitPass {
				t.Error("an error became success")
			}
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		if _, err := wire.Decode(again); err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
	})
}
