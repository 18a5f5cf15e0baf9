package agent

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crowdOf keeps so many connections open from an address, says text on each, and opens another one for each that is closed, until
// the test ends. It returns when all were open once.
func crowdOf(t *testing.T, n int, from, to, text string) (opened *atomic.Int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	opened = &atomic.Int64{}
	var strangers, first sync.WaitGroup
	for range n {
		first.Add(1)
		strangers.Go(func() {
			once := sync.OnceFunc(first.Done)
			defer once()
			for ctx.Err() == nil {
				conn, err := dialer.DialContext(ctx, "tcp", to)
				if err != nil {
					continue
				}
				opened.Add(1)
				once()
				end := context.AfterFunc(ctx, func() { _ = conn.Close() })
				_, _ = io.WriteString(conn, text)
				_, _ = io.Copy(io.Discard, conn) // until the agent closes it
				end()
				_ = conn.Close()
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		strangers.Wait()
	})
	first.Wait()
	return opened
}

// strangers say nothing, the beginning of what a client of TLS says, or something else, and come back when they are closed.
func attacks() map[string]string {
	return map[string]string{"silent": "", "half a hello": "\x16\x03\x01\x02\x00\x01\x00", "HTTP": "GET / HTTP/1.1\r\n\r\n"}
}

// TestStrangersDoNotKeepTheControllerOut: hundreds who connect and never prove who they are, from one address or from the
// controller's own, and each of the controller's connections is served: at its first attempt, or its second where the strangers
// share its address and with it the places of that address. A controller calls again by itself.
func TestStrangersDoNotKeepTheControllerOut(t *testing.T) {
	a := newAuthority(t, "run-1", time.Hour)
	for _, from := range []string{"127.0.0.2", "127.0.0.1"} {
		for name, text := range attacks() {
			t.Run(from+" "+name, func(t *testing.T) {
				s := newTestServer(t, newScripted(), nil)
				address := serveTLS(t, s, a)
				crowdOf(t, 2*strangersAtOne, from, address, text)
				for i := range 10 {
					_, err := speakHTTP2(t, address, a.Controller(s.options.VM))
					if err != nil && from == "127.0.0.1" {
						_, err = speakHTTP2(t, address, a.Controller(s.options.VM))
					}
					if err != nil {
						t.Errorf("connection %d: %v", i, err)
					}
				}
				if lines := strings.Count(string(s.tail.text()), "turned away"); lines > 30 {
					t.Errorf("the log has %d lines about strangers", lines)
				}
			})
		}
	}
}

// TestKnockersDoNotKeepTheControllerOut: who has read the knock off the network, says it and nothing more, is a stranger still.
func TestKnockersDoNotKeepTheControllerOut(t *testing.T) {
	a := newAuthority(t, "run-1", time.Hour)
	s := newTestServer(t, newScripted(), nil)
	address := serveTLS(t, s, a)
	crowdOf(t, 4*handshakesAtOne, "127.0.0.2", address, firstMessage(t, a.Controller(s.options.VM)))
	for i := range 3 {
		if _, err := speakHTTP2(t, address, a.Controller(s.options.VM)); err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
	}
}

// firstMessage is what a client with these settings says before it hears anything.
func firstMessage(t *testing.T, settings *tls.Config) string {
	t.Helper()
	near, far := net.Pipe()
	var client sync.WaitGroup
	client.Go(func() { _ = tls.Client(near, settings).Handshake() })
	text := make([]byte, 16<<10)
	n, err := far.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	_ = far.Close()
	client.Wait()
	return string(text[:n])
}

// TestStrangersLearnNothing: who does not know the run is turned away before the agent has sent anything of its own.
func TestStrangersLearnNothing(t *testing.T) {
	a := newAuthority(t, "run-1", time.Hour)
	s := newTestServer(t, newScripted(), nil)
	address := serveTLS(t, s, a)
	settings := a.Controller(s.options.VM)
	settings.ServerName = "another.bragg"
	settings.VerifyConnection = nil
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := dialTLS(t.Context(), address, settings); err == nil || !strings.Contains(err.Error(), "remote error") {
		t.Errorf("got %v", err)
	}
}

// TestSilentStrangersLeave: also when no other peer waits for their place.
func TestSilentStrangersLeave(t *testing.T) {
	t.Parallel() // it waits
	if handshakeMax > 5*time.Second {
		t.Errorf("a stranger may take %v", handshakeMax)
	}
	s := newTestServer(t, newScripted(), nil)
	address := serveTLS(t, s, newAuthority(t, "run-1", time.Hour))
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute)) // only against hanging
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// TestIdleScrapersDoNotKeepOthersOut: thousands on the port for metrics, of which few are open at a time, and each scrape is
// answered, also that of a scraper which keeps its connection between scrapes.
func TestIdleScrapersDoNotKeepOthersOut(t *testing.T) {
	for _, from := range []string{"127.0.0.2", "127.0.0.1"} {
		for name, text := range map[string]string{
			"silent": "", "half a request": "GET /metrics HT", "between requests": "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
		} {
			t.Run(from+" "+name, func(t *testing.T) {
				s := newTestServer(t, newScripted(), nil)
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				counted := &countedListener{Listener: l}
				t.Cleanup(s.serveMetrics(counted))
				address := l.Addr().String()
				crowdOf(t, 2*scrapersAtOne, from, address, text)
				for i := range 5 {
					err := scrapeOnce(address)
					// One of a thousand at its own address: on a busy machine it may be among those that look silent.
					for more := 4; err != nil && from == "127.0.0.1" && more > 0; more-- {
						err = scrapeOnce(address)
					}
					if err != nil {
						t.Errorf("scrape %d: %v", i, err)
					}
				}
				if n := counted.most.Load(); n > scrapersAtOne+1 {
					t.Errorf("%d connections were open at a time", n)
				}
			})
		}
	}
}

func scrapeOnce(address string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute} // only against hanging
	response, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(bufio.NewReader(response.Body))
	if err == nil && (response.StatusCode != http.StatusOK || !strings.Contains(string(text), "bragg_agent_info")) {
		return fmt.Errorf("%s: %q", response.Status, text)
	}
	return err
}

// countedListener counts connections that are open.
type countedListener struct {
	net.Listener
	open, most atomic.Int64
}

func (l *countedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n := l.open.Add(1)
	for most := l.most.Load(); n > most && !l.most.CompareAndSwap(most, n); most = l.most.Load() {
	}
	return &countedConn{conn.(*net.TCPConn), sync.OnceFunc(func() { l.open.Add(-1) })}, nil
}

type countedConn struct {
	*net.TCPConn
	closed func()
}

func (c *countedConn) Close() error {
	err := c.TCPConn.Close()
	c.closed()
	return err
}

// TestCrowdGivesEachAddressItsShare: an address with few connections is not pushed out by one with many.
func TestCrowdGivesEachAddressItsShare(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := newCrowd(4, 0, 0, 0)
	enter := func(from string) *member {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		near, err := d.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = near.Close() })
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c.admit(far, nil)
	}
	few := []*member{enter("127.0.0.3"), enter("127.0.0.4")}
	for range 20 {
		enter("127.0.0.2")
	}
	if len(c.members) != 4 {
		t.Errorf("%d members", len(c.members))
	}
	for _, m := range few {
		if _, in := c.members[m]; !in {
			t.Errorf("%v was pushed out", m.from)
		}
		_ = m.Close()
		_ = m.Close()
	}
	if len(c.members) != 2 || len(c.count) != 1 {
		t.Errorf("%d members of %v remain", len(c.members), c.count)
	}
}

// TestTricklingBuysNoTime: who sends a byte now and then and never a whole request makes room like one who is silent.
func TestTricklingBuysNoTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := newCrowd(1, 100*time.Millisecond, 500*time.Millisecond, time.Minute)
	never := make(chan struct{})
	connect := func() (near net.Conn, m *member) {
		t.Helper()
		near, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return near, c.admit(far, never)
	}
	near, trickling := connect()
	var work sync.WaitGroup
	defer work.Wait()
	defer near.Close()
	defer trickling.Close()
	work.Go(func() {
		for {
			if _, err := io.WriteString(near, "G"); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	work.Go(func() { _, _ = io.Copy(io.Discard, trickling) })

	hanging := time.AfterFunc(20*time.Second, func() { close(never) })
	defer hanging.Stop()
	honest, m := connect()
	defer honest.Close()
	if m == nil {
		t.Fatal("one who trickles keeps the next one out")
	}
	defer m.Close()
	if _, in := c.members[trickling]; in {
		t.Error("it has its place still")
	}
}

// TestUnreadAnswersMakeRoom: a peer that sends requests and does not read the responses loses its connection.
func TestUnreadAnswersMakeRoom(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	c := newCrowd(1, 0, 0, 50*time.Millisecond)
	m := c.admit(far, nil)
	never := make(chan struct{})
	hanging := time.AfterFunc(20*time.Second, func() { close(never) })
	defer hanging.Stop()
	var answering sync.WaitGroup
	defer answering.Wait()
	begun := make(chan struct{})
	answering.Go(func() {
		m.answer(func() {
			close(begun)
			_, _ = m.Write([]byte("an answer that is never read"))
		})
	})
	<-begun
	_, other := net.Pipe()
	if c.admit(other, never) == nil {
		t.Error("it keeps the next one out")
		_ = far.Close()
	}
	_ = other.Close()
}

// TestFullPortAnswersOnce: a connection with thousands of requests under way has one answer of a port that is full.
func TestFullPortAnswersOnce(t *testing.T) {
	for most, want := range map[int]bool{1: true, 2: false} {
		c := newCrowd(most, 0, 0, 0)
		_, far := net.Pipe()
		m := c.admit(far, nil)
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
		crowdHandler(http.NotFoundHandler()).ServeHTTP(w, r.WithContext(memberContext(r.Context(), m)))
		if closes := w.Header().Get("Connection") == "close"; closes != want {
			t.Errorf("one of %d places taken: the connection ends: %v", most, closes)
		}
		_ = m.Close()
	}
}

// TestFloodWaitsBehindItself: in a crowd of one address that is full and young, a peer of another address does not wait.
func TestFloodWaitsBehindItself(t *testing.T) {
	c := newCrowd(8, time.Hour, time.Hour, time.Hour)
	flood := netip.MustParsePrefix("192.0.2.1/32")
	enter := func(from netip.Prefix) time.Duration {
		_, far := net.Pipe()
		return c.enter(&member{Conn: far, crowd: c, from: from})
	}
	for range 8 {
		enter(flood)
	}
	if wait := enter(netip.MustParsePrefix("192.0.2.2/32")); wait > 0 {
		t.Errorf("another waits %v", wait)
	}
	if wait := enter(flood); wait <= 0 {
		t.Error("the flood does not wait")
	}
}
