package iperf3_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/iperf3"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/testreq"
)

func needIperf(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("iperf3"); err != nil {
		testreq.Skip(t, "no iperf3 (make deps)")
	}
}

// workload returns a load whose servers run until the test ends.
func workload(t testing.TB, pairs int, options map[string]string) load.Workload {
	t.Helper()
	w := load.Workload{Name: "contract", Group: "group", VM: "group-0001", Instance: 3, Generator: iperf3.Name, Seed: 42, Options: options}
	servers := w
	servers.Group, servers.VM = "servers", "servers-0001"
	servers.Remote = load.Remote{Serves: true, Address: "127.0.0.1"}
	for range pairs {
		servers.Remote.Peers = append(servers.Remote.Peers, load.Peer{VM: w.VM, Address: "127.0.0.1"})
	}
	in, err := iperf3.Generator{}.Prepare(t.Context(), servers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	for _, port := range in.(load.Server).Ports() {
		w.Remote.Peers = append(w.Remote.Peers, load.Peer{VM: servers.VM, Address: "127.0.0.1", Port: port})
	}
	return w
}

func TestContract(t *testing.T) {
	needIperf(t)
	w := workload(t, 2, map[string]string{"streams": "2", "bitrate": "200M"})
	loadtest.RunAny(t, loadtest.Subject{Generator: iperf3.Generator{}, LatencyAtEnd: true, Endless: func(testing.TB) load.Workload { return w }})
}

func TestSimulation(t *testing.T) {
	loadtest.RunAny(t, loadtest.Subject{Generator: iperf3.Simulation, Endless: func(testing.TB) load.Workload {
		return load.Workload{Name: "contract", Group: "group", VM: "group-0001", Instance: 3, Generator: iperf3.Name}
	}})
}

// Run itself holds its totals against the results of iperf3; here, each way to move data does.
func TestDirections(t *testing.T) {
	needIperf(t)
	if testing.Short() {
		t.Skip("runs iperf3 for seconds")
	}
	for name, c := range map[string]struct {
		options        map[string]string
		sent, received bool
	}{
		"tcp send":    {map[string]string{"streams": "3"}, true, false},
		"tcp receive": {map[string]string{"direction": "receive", "streams": "2", "window": "1MiB", "zerocopy": "true"}, false, true},
		"tcp both":    {map[string]string{"direction": "both", "streams": "2", "omit": "1s", "block": "64KiB", "congestion": "cubic"}, true, true},
		"udp send":    {map[string]string{"protocol": "udp", "bitrate": "50M", "streams": "2"}, true, false},
		"udp receive": {map[string]string{"protocol": "udp", "bitrate": "50M", "direction": "receive"}, false, true},
		"udp both":    {map[string]string{"protocol": "udp", "bitrate": "20M", "direction": "both"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workload(t, 1, c.options)
			w.Runtime = 2 * time.Second
			in, err := iperf3.Generator{}.Prepare(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			var log loadtest.Log
			if err := in.Run(t.Context(), &log); err != nil {
				t.Fatalf("%v\n%s", err, in.(load.Teller).Outputs()[0].Text)
			}
			all := log.Intervals()
			loadtest.CheckOrder(t, w, all)
			sum := loadtest.Add(all)
			if (sum.Directions[0].Bytes > 0) != c.sent || (sum.Directions[1].Bytes > 0) != c.received {
				t.Errorf("sent %d bytes, received %d", sum.Directions[0].Bytes, sum.Directions[1].Bytes)
			}
			for i, g := range in.(load.Describer).Engine().Gauges {
				t.Logf("%s: %v %s", g.Name, all[len(all)-1].Gauges[i], g.Unit)
			}
		})
	}
}

// A load that is stopped has what was moved until then; one whose server goes away fails.
func TestEnds(t *testing.T) {
	needIperf(t)
	w := workload(t, 1, map[string]string{"bitrate": "100M"})
	w.IntervalLength = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	var log loadtest.Log
	err := loadtest.Drive(ctx, iperf3.Generator{}, w, load.SinkFunc(func(iv interval.Interval) {
		log.Interval(iv)
		if iv.Sequence == 3 {
			cancel()
		}
	}))
	if sum := loadtest.Add(log.Intervals()); err != nil || sum.Directions[0].Bytes == 0 {
		t.Errorf("%v, %d bytes", err, sum.Directions[0].Bytes)
	}
	w.Remote.Peers[0].Port = 1
	w.Runtime = time.Second
	if err := loadtest.Drive(t.Context(), iperf3.Generator{}, w, &loadtest.Log{}); err == nil {
		t.Error("no error without a server")
	} else {
		t.Log(err)
	}
}

const helperFar = "BRAGG_IPERF3_TEST_FAR" // the other end of a cable, on Linux

const helperServes = "BRAGG_IPERF3_TEST_SERVES"

func TestMain(m *testing.M) {
	if os.Getenv(helperServes) != "" {
		helper()
	}
	if text := os.Getenv(helperFar); text != "" {
		beFar(text)
	}
	os.Exit(m.Run())
}
