package commitlatency_test

import (
	"bytes"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/commitlatency"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/program"
)

// An outage hits the one operation that is in flight. Whichever that is, the split of the others stays what it was: in an interval of
// many operations, and in intervals that have one of each kind or fewer.
func TestStallIsInNoWait(t *testing.T) {
	took := map[string]time.Duration{"commit": 9 * time.Millisecond, "round-trip": 2 * time.Millisecond, "fdatasync": 5 * time.Millisecond, "commit-async": 3 * time.Millisecond}
	for _, slower := range []time.Duration{1, 40} {
		for _, hit := range commitlatency.Kinds() {
			var got []interval.Interval
			out := &program.Recorder{Workload: load.Workload{Name: "W"}, Sink: load.SinkFunc(func(iv interval.Interval) { got = append(got, iv) })}
			out.Begin(0)
			var done []program.Operation
			at, stalled := time.Duration(0), 0
			for at < 20*time.Second {
				for kind, name := range commitlatency.Kinds() {
					latency := slower * took[name]
					if at > 10*time.Second && name == hit && stalled == 0 {
						latency, stalled = latency+2*time.Second, len(done)
					}
					at += latency
					done = append(done, program.Operation{Kind: kind, End: int64(at), Latency: int64(latency)})
				}
			}
			commitlatency.Waits(out, done)
			out.Finish(int64(at))
			known := 0
			for _, iv := range got {
				want := interval.GaugeValues{2 * float64(slower), float64(slower), 6 * float64(slower)}
				if math.IsNaN(iv.Gauges[2]) {
					continue
				}
				known++
				for i := range want {
					if math.Abs(iv.Gauges[i]-want[i]) > 1e-6 {
						t.Errorf("%s stalled, interval %d: waits %v, want %v", hit, iv.Sequence, iv.Gauges, want)
						break
					}
				}
			}
			if known < 10 || stalled == 0 {
				t.Errorf("%s: %d of %d intervals are known", hit, known, len(got))
			}
		}
	}
}

// A load with fewer operations than a median needs has waits nevertheless, at its end.
func TestShortLoadHasWaits(t *testing.T) {
	var got []interval.Interval
	out := &program.Recorder{Workload: load.Workload{Name: "W"}, Sink: load.SinkFunc(func(iv interval.Interval) { got = append(got, iv) })}
	out.Begin(0)
	var done []program.Operation
	for kind := range commitlatency.Kinds() {
		done = append(done, program.Operation{Kind: kind, End: int64(1+kind) * 1e6, Latency: 1e6})
	}
	commitlatency.Waits(out, done)
	out.Finish(5e6)
	if want := (interval.GaugeValues{1, 0, 0}); len(got) != 1 || !slices.Equal(got[0].Gauges, want) {
		t.Errorf("%+v, want waits %v", got, want)
	}
}

// network passes messages of clients on to a server, each after a delay, and once stops all of them: as soon as it has passed on
// stallAfter executions of a statement, in the middle of the next one.
type network struct {
	delay, stall time.Duration
	statement    string
	stallAfter   int64

	seen    atomic.Int64
	passing sync.RWMutex // held while the network is down
}

func (n *network) listen(t *testing.T, socket string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("unix", socket)
			if err != nil {
				_ = c.Close()
				continue
			}
			all.Go(func() { n.pass(s, c) })
			all.Go(func() { n.pass(c, s) })
		}
	})
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

func (n *network) pass(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		count, err := from.Read(buffer)
		if err != nil {
			return
		}
		time.Sleep(n.delay)
		if bytes.Contains(buffer[:count], []byte(n.statement)) && n.seen.Add(1) == n.stallAfter {
			n.passing.Lock()
			time.Sleep(n.stall)
			n.passing.Unlock()
		}
		n.passing.RLock()
		_, err = to.Write(buffer[:count])
		n.passing.RUnlock()
		if err != nil {
			return
		}
	}
}

// The truth is known here: each message takes a time on the network, and once the network is down for two seconds. It is down for a commit, for
// one without a sync, or for a round trip, and none of these seconds is a wait of the database or the disk.
func TestStallOfTheNetwork(t *testing.T) {
	needPostgreSQL(t)
	socket := loadtest.Endpoint(t, commitlatency.Generator{}, workload(t, nil))
	const delay, stall = 4 * time.Millisecond, 2 * time.Second
	var loads sync.WaitGroup // they wait for their networks, each with connections of its own
	for i, c := range []struct {
		kind, statement string
		after           int64 // both connections prepare each statement once, and commits with and without a sync take turns
	}{{"commit", "insert", 61}, {"commit-async", "insert", 60}, {"round-trip", "select", 60}} {
		n := &network{delay: delay, stall: stall, statement: "\x00" + c.statement + "\x00", stallAfter: c.after}
		t.Setenv(fmt.Sprint("BRAGG_ENDPOINT_LAB", i), "host=127.0.0.1 port="+n.listen(t, socket)+" user=bragg dbname=bragg sslmode=disable")
		w := load.Workload{Name: "w", Group: "g", VM: "g-0001", Instance: 1, Generator: commitlatency.Name, Options: map[string]string{"endpoint": fmt.Sprint("lab", i)},
			Runtime: 4 * time.Second, IntervalLength: 200 * time.Millisecond}
		loads.Go(func() {
			var log loadtest.Log
			if err := loadtest.Drive(t.Context(), commitlatency.Generator{}, w, &log); err != nil {
				t.Errorf("%s: %v", c.kind, err)
				return
			}
			checkStall(t, c.kind, n, log.Intervals())
		})
	}
	loads.Wait()
}

// checkStall: an operation of a kind took as long as its network was down, and no wait of an interval did.
func checkStall(t *testing.T, kind string, n *network, ivs []interval.Interval) {
	t.Helper()
	if name, took := slowest(ivs); name != kind || took < n.stall {
		t.Errorf("the slowest operation is a %s of %v, and the network was down for %v during a %s", name, took, n.stall, kind)
	}
	known := 0
	for _, iv := range ivs {
		if math.IsNaN(iv.Gauges[2]) {
			continue
		}
		known++
		if bad := func(ms float64) bool { return math.Abs(ms) > n.stall.Seconds()*1e3/8 }; slices.ContainsFunc(iv.Gauges, bad) || iv.Gauges[0] < 2*n.delay.Seconds()*1e3 {
			t.Errorf("%s: interval %d: waits %v ms for network, database and disk, with a round trip of %v", kind, iv.Sequence, iv.Gauges, 2*n.delay)
		}
	}
	if known < 5 {
		t.Errorf("%s: the waits of %d of %d intervals are known", kind, known, len(ivs))
	}
}

// slowest is the kind of the slowest operation, and its service time.
func slowest(ivs []interval.Interval) (kind string, took time.Duration) {
	sum := loadtest.Add(ivs)
	for i, name := range []string{"commit", "round-trip", "commit-async"} {
		if h := sum.Directions[i].Service; h != nil && time.Duration(h.Max()) > took {
			kind, took = name, time.Duration(h.Max())
		}
	}
	return kind, took
}
