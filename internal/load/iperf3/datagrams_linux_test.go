package iperf3_test

import (
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/iperf3"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

// relay stands between client and server of a load: it loses every n-th datagram of a direction, and delays every other one. What it passed
// on is the truth.
type relay struct {
	server net.Addr
	lose   [2]int64 // every so many datagrams, to the server and from it; 0: none
	delay  time.Duration

	seen, passed, passedBytes [2]atomic.Int64
	wg                        sync.WaitGroup
}

// listen relays TCP, and UDP of any number of clients, and returns the port.
func (r *relay) listen(t *testing.T) int {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	done := t.Context().Done()
	r.wg.Go(func() {
		<-done
		_, _ = tcp.Close(), udp.Close()
	})
	r.wg.Go(func() { r.control(tcp) })
	r.wg.Go(func() { r.datagrams(t, udp) })
	return tcp.Addr().(*net.TCPAddr).Port
}

func (r *relay) control(listener net.Listener) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.server.String())
		if err != nil {
			_ = near.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			r.wg.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_, _ = near.Close(), far.Close()
			})
		}
	}
}

func (r *relay) datagrams(t *testing.T, near net.PacketConn) {
	far := map[string]net.Conn{}
	buffer := make([]byte, 1<<16)
	for {
		n, from, err := near.ReadFrom(buffer)
		if err != nil {
			for _, c := range far {
				_ = c.Close()
			}
			return
		}
		c := far[from.String()]
		if c == nil {
			if c, err = net.Dial("udp", r.server.String()); err != nil {
				t.Error(err)
				return
			}
			far[from.String()] = c
			r.wg.Go(func() {
				answer := make([]byte, 1<<16)
				for {
					n, err := c.Read(answer)
					if err != nil {
						return
					}
					r.pass(1, answer[:n], func(p []byte) { _, _ = near.WriteTo(p, from) })
				}
			})
		}
		r.pass(0, buffer[:n], func(p []byte) { _, _ = c.Write(p) })
	}
}

// pass counts and sends a datagram, unless it is one to lose. Streams begin with an exchange of four bytes.
func (r *relay) pass(direction int, p []byte, send func([]byte)) {
	if len(p) > 4 {
		n := r.seen[direction].Add(1)
		if every := r.lose[direction]; every > 0 && n%every == 0 {
			return
		}
		r.passed[direction].Add(1)
		r.passedBytes[direction].Add(int64(len(p)))
		if r.delay > 0 && n%2 == 0 {
			time.Sleep(r.delay)
		}
	}
	send(p)
}

// Datagrams that are lost, and bytes that arrive, are those that the relay lost and passed on, of the direction in which it did.
func TestTruthOfLostDatagrams(t *testing.T) {
	needIperf(t)
	if testing.Short() {
		t.Skip("runs iperf3 for seconds")
	}
	const (
		block     = 1000
		tolerance = 0.05 // for what is under way at the end, and for a relay that a busy machine holds up
	)
	for _, c := range []struct {
		name, direction, bitrate, streams string
		delay                             time.Duration
	}{
		{"send", "send", "1M", "3", 0},
		{"receive", "receive", "1M", "3", 0},
		{"both", "both", "1M", "2", 0},
		{"jitter", "send", "400k", "1", 8 * time.Millisecond},
		{"jitter back", "receive", "400k", "1", 8 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := load.Workload{Name: "truth", VM: "server", Generator: iperf3.Name, Options: map[string]string{"protocol": "udp", "block": "1000",
				"bitrate": c.bitrate, "streams": c.streams, "direction": c.direction}}
			w.Remote = load.Remote{Serves: true, Address: "127.0.0.1", Peers: []load.Peer{{VM: "client", Address: "127.0.0.1"}}}
			servers, err := iperf3.Generator{}.Prepare(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			defer servers.Close()
			r := &relay{server: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: servers.(load.Server).Ports()[0]}, delay: c.delay}
			if c.delay == 0 {
				r.lose = [2]int64{10, 4}
			}
			w.VM, w.Runtime = "client", truthTime
			w.Remote = load.Remote{Peers: []load.Peer{{VM: "server", Address: "127.0.0.1", Port: r.listen(t)}}}
			in, err := iperf3.Generator{}.Prepare(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			var log loadtest.Log
			if err := in.Run(t.Context(), &log); err != nil {
				t.Fatal(err)
			}
			all := log.Intervals()
			gauges := last(in.(load.Describer).Engine().Gauges, all)
			sum := loadtest.Add(all)
			t.Logf("sent %d, received %d, seen %d %d, passed %d %d, gauges %v", sum.Directions[0].Bytes, sum.Directions[1].Bytes, r.seen[0].Load(), r.seen[1].Load(),
				r.passedBytes[0].Load(), r.passedBytes[1].Load(), gauges)
			near := func(what string, got, want float64) {
				if !(math.Abs(got-want) <= tolerance*want) {
					t.Errorf("%s: %g, want %g", what, got, want)
				}
			}
			// Datagrams under way at the end are in one count and not in the other.
			near("sent", float64(sum.Directions[0].Bytes), block*float64(r.seen[0].Load()))
			near("received", float64(sum.Directions[1].Bytes), float64(r.passedBytes[1].Load()))
			if c.direction != "receive" {
				near("received by servers", gauges["received by servers"], float64(r.passedBytes[0].Load()))
			}
			if c.direction != "send" {
				near("sent by servers", gauges["sent by servers"], block*float64(r.seen[1].Load()))
			}
			seen, passed := r.seen[0].Load()+r.seen[1].Load(), r.passed[0].Load()+r.passed[1].Load()
			if want := 100 * float64(seen-passed) / float64(seen); math.Abs(gauges["not received"]-want) > 100*tolerance {
				t.Errorf("not received %g %%, want %g", gauges["not received"], want)
			}
			// Datagrams come with 8 ms more and less between them in turns, and whatever else delays them only adds to that.
			if c.delay > 0 && gauges["jitter"] < 4 {
				t.Errorf("jitter %g ms, want about 8", gauges["jitter"])
			}
		})
	}
}

// last are the last values of gauges.
func last(gauges []interval.Gauge, all []interval.Interval) map[string]float64 {
	values := map[string]float64{}
	for i := range all {
		for k, g := range gauges {
			if v := all[i].Gauges[k]; !math.IsNaN(v) && !strings.HasPrefix(g.Name, "stream ") {
				values[g.Name] = v
			}
		}
	}
	return values
}
