package iperf3_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/iperf3"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/testreq"
)

// The client of a load is in this network namespace and its server in another one, with a cable between them that has a limit in both
// directions. Truth is the counters of our end of the cable, which the kernel counts, and the limit.
const (
	limitBits = 200e6
	truthTime = 2 * time.Second
)

// cables counts those of this process: a namespace takes its cable away only some time after its last process has ended.
var cables atomic.Int32

// cable makes the other namespace, held by a process of this binary that runs the servers, and returns the name of our end.
func cable(t *testing.T, w load.Workload) (name string, peers []load.Peer) {
	t.Helper()
	testreq.Root(t)
	for _, program := range []string{"ip", "tc", "unshare"} {
		testreq.Program(t, program)
	}
	n, third := int(cables.Add(1)), os.Getpid()%256
	name = fmt.Sprintf("bri%d-%d", os.Getpid()%100_000, n)
	near, far := fmt.Sprintf("10.214.%d.%d", third, 4*n+1), fmt.Sprintf("10.214.%d.%d", third, 4*n+2)
	w.Remote = load.Remote{Serves: true, Address: far, Peers: []load.Peer{{VM: w.VM, Address: near}}}
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--net", os.Args[0])
	cmd.Env = append(os.Environ(), helperFar+"="+string(text))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	var ready string
	if _, err := fmt.Fscanln(out, &ready); err != nil {
		t.Fatal(err)
	}
	ip(t, "link add %s type veth peer name eth0 netns %d", name, cmd.Process.Pid)
	ip(t, "addr add %s/30 dev %s", near, name)
	ip(t, "link set %s up", name)
	shape(t, name)
	if _, err := fmt.Fprintln(in, far); err != nil {
		t.Fatal(err)
	}
	var port int
	if _, err := fmt.Fscanln(out, &port); err != nil || port == 0 {
		t.Fatalf("port %d: %v", port, err)
	}
	return name, []load.Peer{{VM: "server", Address: far, Port: port}}
}

func ip(t testing.TB, format string, args ...any) { command(t, "ip", format, args...) }

func shape(t testing.TB, device string) {
	command(t, "tc", "qdisc add dev %s root tbf rate %d burst 64kb latency 20ms", device, int64(limitBits))
}

func command(t testing.TB, program, format string, args ...any) {
	if out, err := exec.Command(program, strings.Fields(fmt.Sprintf(format, args...))...).CombinedOutput(); err != nil {
		fatal(t, fmt.Sprintf("%s %s: %v: %s", program, fmt.Sprintf(format, args...), err, out))
	}
}

// fatal ends a test, or the helper.
func fatal(t testing.TB, text string) {
	if t != nil {
		t.Fatal(text)
	}
	fmt.Fprintln(os.Stderr, text)
	os.Exit(1)
}

// beFar is the process in the other namespace: it waits for its end of the cable, and then serves until its input ends.
func beFar(text string) {
	var w load.Workload
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		fatal(nil, err.Error())
	}
	fmt.Println("ready")
	var address string
	if _, err := fmt.Scanln(&address); err != nil {
		fatal(nil, err.Error())
	}
	ip(nil, "addr add %s/30 dev eth0", address)
	ip(nil, "link set eth0 up")
	shape(nil, "eth0")
	in, err := iperf3.Generator{}.Prepare(context.Background(), w)
	if err != nil {
		fatal(nil, err.Error())
	}
	fmt.Println(in.(load.Server).Ports()[0])
	_, _ = fmt.Scanln(&address)
	_ = in.Close()
	os.Exit(0)
}

// counted reads the counters of an interface: bytes received and sent.
func counted(t *testing.T, device string) (numbers [2]float64) {
	t.Helper()
	for i, name := range []string{"tx_bytes", "rx_bytes"} {
		text, err := os.ReadFile("/sys/class/net/" + device + "/statistics/" + name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers[i] = float64(n)
	}
	return numbers
}

// Bytes of a load are those of the interface without headers, and its rate is that of the limit.
func TestTruthOfLimitedNetwork(t *testing.T) {
	needIperf(t)
	if testing.Short() {
		t.Skip("runs iperf3 for seconds")
	}
	for _, c := range []struct {
		direction string
		streams   int
	}{{"send", 2}, {"receive", 2}, {"both", 2}} {
		t.Run(c.direction, func(t *testing.T) {
			t.Parallel()
			w := load.Workload{Name: "truth", VM: "client", Generator: iperf3.Name,
				Options: map[string]string{"streams": fmt.Sprint(c.streams), "direction": c.direction}}
			device, peers := cable(t, w)
			w.Remote.Peers, w.Runtime = peers, truthTime
			in, err := iperf3.Generator{}.Prepare(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			before := counted(t, device)
			var log loadtest.Log
			if err := in.Run(t.Context(), &log); err != nil {
				t.Fatal(err)
			}
			after, all := counted(t, device), log.Intervals()
			sum := loadtest.Add(all)
			for d, name := range []string{"sent", "received"} {
				bytes, wire := float64(sum.Directions[d].Bytes), after[d]-before[d]
				used := c.direction == "both" || (d == 0) == (c.direction == "send")
				if !used {
					if bytes != 0 {
						t.Errorf("%s %g bytes", name, bytes)
					}
					continue
				}
				// A full packet has 1448 of 1514 bytes; what waits in the sender's socket at the end was counted and not sent.
				rate := bytes * 8 / truthTime.Seconds()
				t.Logf("%s %.1f MB, on the wire %.1f MB (%.3f), %.1f Mbit/s of %.0f", name, bytes/1e6, wire/1e6, bytes/wire, rate/1e6, limitBits/1e6)
				if bytes > 1.1*wire || bytes < 0.85*wire {
					t.Errorf("%s %g bytes, and %g were on the wire", name, bytes, wire)
				}
				if rate > 1.1*limitBits || rate < 0.7*limitBits {
					t.Errorf("%s at %.1f Mbit/s, and the limit is %.0f", name, rate/1e6, limitBits/1e6)
				}
			}
			streams := 0.0 // bytes
			for i, g := range in.(load.Describer).Engine().Gauges {
				for k := range all {
					if v := all[k].Gauges[i]; strings.HasPrefix(g.Name, "stream ") && !math.IsNaN(v) {
						streams += v * 1e6 * float64(all[k].LengthNanos) / 1e9
					}
				}
			}
			moved := float64(sum.Directions[0].Bytes + sum.Directions[1].Bytes)
			t.Logf("streams together %.2f MB, the load %.2f MB", streams/1e6, moved/1e6)
			if math.Abs(streams-moved) > 0.01*moved {
				t.Error("the series of single streams are not those of the load")
			}
		})
	}
}
