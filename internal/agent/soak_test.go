//go:build linux

package agent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/testreq"
)

// soakVariable is how long the soak lasts: "make soak-agent" sets 35 minutes; an ordinary test run takes some seconds, so that the
// soak itself keeps working.
const soakVariable = "BRAGG_SOAK"

// soakGrowthMax bounds the growth of memory in an hour, soakNoiseBytes what a shorter look cannot tell from noise: the garbage
// collector lets the heap grow and shrink by some mebibytes.
const (
	soakGrowthMax  = 0.01
	soakNoiseBytes = 4 << 20
	soakUsual      = 6 * time.Second
)

// soakSample is one look at the agent's process.
type soakSample struct {
	at               time.Duration
	resident         int64
	threads, handles int
}

// TestSoak runs the stripped agent as a process of its own for a long time: two steady loads, and a short one again and again,
// and looks at its memory each second.
func TestSoak(t *testing.T) {
	lasts := soakUsual
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	} else if testing.Short() {
		t.Skip("long")
	}
	process, client := startAgent(t)
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, soakFileBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), lasts)
	defer stop()
	var intervals, operations atomic.Int64
	sink := load.SinkFunc(func(iv interval.Interval) {
		intervals.Add(1)
		total := iv.Totals()
		operations.Add(int64(total.Operations))
	})
	var wait sync.WaitGroup
	for i, options := range soakLoads {
		wait.Go(func() {
			again := i == len(soakLoads)-1 // the last one is short
			for n := 1; ; n++ {
				err := client.Run(ctx, soakWorkload(i, n, path, options), sink)
				if err != nil {
					t.Errorf("load %d: %v", i, err)
				}
				if err != nil || !again || ctx.Err() != nil {
					return
				}
			}
		})
	}
	samples := watchProcess(t, ctx, process)
	wait.Wait()
	report := describeSoak(samples)
	t.Logf("%d intervals with %d operations\n%s", intervals.Load(), operations.Load(), report.text)
	if operations.Load() == 0 || len(samples) < int(lasts/time.Second)/2 {
		t.Errorf("%d samples of memory", len(samples))
	}
	allowed := soakNoiseBytes + int64(soakGrowthMax*float64(report.early)*max(1, lasts.Hours()))
	if grown := report.late - report.early; lasts >= time.Minute && grown > allowed {
		t.Errorf("memory grew by %d bytes from the second quarter to the last, want at most %d", grown, allowed)
	}
}

const soakFileBytes = 64 << 20

// soakLoads are job options: without a device's work, with it, and what is started again and again.
var soakLoads = []string{
	"rw=randrw ioengine=null iodepth=32 rate_iops=20000 rate_process=poisson time_based runtime=1000h",
	"rw=randrw ioengine=io_uring direct=1 iodepth=32 rate_iops=500 time_based runtime=1000h",
	"rw=randrw ioengine=psync direct=1 rate_iops=200 time_based runtime=3",
}

func soakWorkload(number, instance int, path, options string) load.Workload {
	return load.Workload{
		Name: "soak-" + strconv.Itoa(number), Group: "g", VM: "g-0001", Instance: instance, Generator: "native", Seed: 1,
		ConfigName: "soak.fio", ZeroUnixNanos: time.Now().UnixNano(),
		Config:  "[job]\nfilename=/dev/sdb\nbs=4k\n" + strings.ReplaceAll(options, " ", "\n") + "\n",
		Devices: []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: soakFileBytes}},
	}
}

// startAgent builds the agent as it is delivered and starts it with one end of a socket pair.
func startAgent(t *testing.T) (*os.Process, *client.Client) {
	t.Helper()
	dir := t.TempDir()
	if err := testreq.Build(dir, "github.com/braggdev/bragg/cmd/bragg-agent"); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "bragg-agent")
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	near, far := os.NewFile(uintptr(pair[0]), "near"), os.NewFile(uintptr(pair[1]), "far")
	defer near.Close()
	defer far.Close()
	config, err := json.Marshal(agent.Config{VM: "g-0001", ConnectionFD: 3})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, string(config))
	cmd.ExtraFiles, cmd.Stderr = []*os.File{far}, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := net.FileConn(near)
	if err != nil {
		t.Fatal(err)
	}
	client := client.New(conn, client.Options{})
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), cmd.Wait()); err != nil {
			t.Errorf("end the agent: %v", err)
		}
	})
	return cmd.Process, client
}

// watchProcess looks each second until ctx ends.
func watchProcess(t *testing.T, ctx context.Context, process *os.Process) []soakSample {
	t.Helper()
	var all []soakSample
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return all
		case <-tick.C:
		}
		s := soakSample{at: time.Since(began)}
		folder := "/proc/" + strconv.Itoa(process.Pid)
		status, err := os.Open(folder + "/status")
		if err != nil {
			t.Errorf("the agent is gone: %v", err)
			return all
		}
		for lines := bufio.NewScanner(status); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 2 {
				continue
			}
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			switch fields[0] {
			case "VmRSS:":
				s.resident = n << 10
			case "Threads:":
				s.threads = int(n)
			}
		}
		status.Close()
		handles, _ := os.ReadDir(folder + "/fd")
		s.handles = len(handles)
		all = append(all, s)
	}
}

// soakReport is a table of the samples, and the medians of the second and the last quarter. The first quarter is left
// out: buffers fill there.
type soakReport struct {
	text        string
	early, late int64
}

func describeSoak(samples []soakSample) soakReport {
	var r soakReport
	if len(samples) < 4 {
		return r
	}
	quarter := len(samples) / 4
	r.early, r.late = medianOf(samples[quarter:2*quarter]), medianOf(samples[len(samples)-quarter:])
	var b strings.Builder
	fmt.Fprintf(&b, "%10s %12s %12s %12s %8s %8s\n", "until", "median MiB", "lowest MiB", "highest MiB", "threads", "handles")
	const rows = 12
	for i := range rows {
		part := samples[i*len(samples)/rows : (i+1)*len(samples)/rows]
		if len(part) == 0 {
			continue
		}
		last := part[len(part)-1]
		low, high := last.resident, last.resident
		for _, s := range part {
			low, high = min(low, s.resident), max(high, s.resident)
		}
		mib := func(n int64) string { return fmt.Sprintf("%.2f", float64(n)/(1<<20)) }
		fmt.Fprintf(&b, "%10s %12s %12s %12s %8d %8d\n", last.at.Round(time.Second), mib(medianOf(part)), mib(low), mib(high), last.threads, last.handles)
	}
	slope := slopeOf(samples[quarter:]) * 3600
	fmt.Fprintf(&b, "slope behind the first quarter: %+.3f MiB an hour (%+.2f %%)\n", slope/(1<<20), 100*slope/float64(r.early))
	r.text = b.String()
	return r
}

func medianOf(samples []soakSample) int64 {
	var all []int64
	for _, s := range samples {
		all = append(all, s.resident)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// slopeOf returns the least-squares slope in bytes a second.
func slopeOf(samples []soakSample) float64 {
	var n, x, y, xx, xy float64
	for _, s := range samples {
		at, bytes := s.at.Seconds(), float64(s.resident)
		n, x, y, xx, xy = n+1, x+at, y+bytes, xx+at*at, xy+at*bytes
	}
	return (n*xy - x*y) / (n*xx - x*x)
}
