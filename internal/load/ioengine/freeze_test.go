//go:build linux

package ioengine_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

// childVariable holds a workload as JSON: this binary, started again, runs it and prints its intervals.
const childVariable = "BRAGG_TEST_WORKLOAD"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		os.Exit(child(text))
	}
	os.Exit(m.Run())
}

func child(text string) int {
	if os.Getenv("BRAGG_TEST_SECCOMP") != "" {
		if err := denyUring(); err != nil {
			println("seccomp:", err.Error())
			return 1
		}
	}
	var w load.Workload
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		println(err.Error())
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	collects := os.Getenv("BRAGG_TEST_COLLECT") != ""
	if collects {
		defer ioengine.SetDrainMax(400 * time.Millisecond)()
	}
	instance, err := ioengine.New().Prepare(context.Background(), w)
	if err == nil {
		println(instance.(load.Describer).Engine().String())
		err = instance.Run(ctx, load.SinkFunc(func(iv interval.Interval) {
			if collects {
				runtime.GC() // which waits for everything that runs
			}
			os.Stdout.Write(append(interval.AppendJSON(nil, &iv), '\n'))
		}))
	}
	if err != nil {
		println(err.Error())
		return 1
	}
	return 0
}

// start runs w in a process of its own.
func start(t *testing.T, w load.Workload, env ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(append(os.Environ(), childVariable+"="+string(text)), env...)
	var out, messages bytes.Buffer
	c.Stdout, c.Stderr = &out, &messages
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, &out, &messages
}

func intervals(t *testing.T, out *bytes.Buffer) []interval.Interval {
	t.Helper()
	var all []interval.Interval
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var iv interval.Interval
		if err := json.Unmarshal(lines.Bytes(), &iv); err != nil {
			t.Fatal(err)
		}
		all = append(all, iv)
	}
	return all
}

// The generator is stopped for a second in a run of five at 1,000 operations a second. A fifth of all operations was due
// while nothing could be issued, so the 99th percentile of the response time is the stop less a twentieth of it. Tools
// that count from submission show milliseconds.
//
// A machine that starves the generator at the same time makes the stop longer than the one that is measured here; the
// generator's own account of stalls tells. Such a try does not count, and when all are so, the account is the bound.
func TestFreezeShowsInResponseTime(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for name, options := range map[string]string{
		"psync at depth 1":     "ioengine=psync iodepth=1",
		"io_uring at depth 32": "ioengine=io_uring iodepth=32 rate_process=poisson",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const slack = int64(20 * time.Millisecond)
			for try := 1; ; try++ {
				frozen, sum := freeze(t, options, nil)
				starved := sum.StalledNanos > frozen+slack
				if starved && try < 6 {
					t.Logf("try %d: stopped for %d ms, but starved for %d ms", try, frozen/1e6, sum.StalledNanos/1e6)
					continue
				}
				checkFreeze(t, sum, frozen, max(frozen, sum.StalledNanos)+slack)
				return
			}
		})
	}
}

// freeze runs a load in a process of its own, stops it for a second, and returns for how long it was stopped, in
// nanoseconds, and what it recorded.
func freeze(t *testing.T, options string, policy map[string]string) (int64, loadtest.Sum) {
	t.Helper()
	w := files(t, job("rw=randread bs=4k rate_iops=1000 time_based "+options))
	w.Runtime, w.Options = 5*time.Second, policy
	c, out, messages := start(t, w)
	time.Sleep(1500 * time.Millisecond)
	send := func(s syscall.Signal) time.Time {
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		return time.Now()
	}
	stopped := send(syscall.SIGSTOP)
	time.Sleep(time.Second)
	frozen := send(syscall.SIGCONT).Sub(stopped)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %s", err, messages)
	}
	all := intervals(t, out)
	loadtest.CheckIntervals(t, w, all)
	return int64(frozen), loadtest.Add(all)
}

// With the backlog dropped, the operations that were due in the stop are counted and never issued; those that are issued are
// as late as the bound at most.
func TestFreezeDropsTheBacklog(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for _, options := range []string{"ioengine=psync iodepth=1", "ioengine=io_uring iodepth=32 rate_process=poisson"} {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			frozen, sum := freeze(t, options, map[string]string{"backlog": "drop:20ms"})
			read := &sum.Directions[interval.Read]
			t.Logf("stopped for %v: %d due, %d done, %d not issued, p99 of the response time %v", time.Duration(frozen), sum.Due,
				read.Operations, sum.NotIssued, time.Duration(read.Response.Quantile(0.99)))
			if sum.Due != read.Operations+sum.NotIssued {
				t.Errorf("%d due, %d done, %d not issued: they do not add up", sum.Due, read.Operations, sum.NotIssued)
			}
			if stopped := float64(frozen) / 1e6; float64(sum.NotIssued) < 0.9*stopped {
				t.Errorf("%d of the %.0f that were due in the stop are dropped", sum.NotIssued, stopped)
			}
			if got := read.Response.Quantile(0.99); got > 0.2*float64(frozen) {
				t.Errorf("p99 of the response time is %v: what was dropped is in it", time.Duration(got))
			}
		})
	}
}

func checkFreeze(t *testing.T, sum loadtest.Sum, frozen, high int64) {
	t.Helper()
	read := &sum.Directions[interval.Read]
	response, service := read.Response.Quantile(0.99), read.Service.Quantile(0.99)
	t.Logf("stopped for %v: p99 response %v, service %v, stalled %v", time.Duration(frozen), time.Duration(response),
		time.Duration(service), time.Duration(sum.StalledNanos))
	if response < 0.90*float64(frozen) || response > float64(high) {
		t.Errorf("stopped for %v: p99 of the response time is %v", time.Duration(frozen), time.Duration(response))
	}
	if float64(sum.StalledNanos) < 0.9*float64(frozen) {
		t.Errorf("stopped for %v: %v are marked as stalled", time.Duration(frozen), time.Duration(sum.StalledNanos))
	}
	if sum.Due != read.Operations+sum.NotIssued || sum.NotIssued > 2 {
		t.Errorf("%d due, %d done, %d not issued: the backlog was not worked off", sum.Due, read.Operations, sum.NotIssued)
	}
}

// Where a filter forbids io_uring, as in most containers, libaio takes over at the asked depth, and says so.
func TestFallBackUnderSeccomp(t *testing.T) {
	t.Parallel()
	w := files(t, job("rw=randread bs=4k size=1m ioengine=libaio iodepth=8 direct=1"))
	c, out, messages := start(t, w, "BRAGG_TEST_SECCOMP=1")
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %s", err, messages)
	}
	if sum := loadtest.Add(intervals(t, out)); sum.Directions[interval.Read].Operations != 256 {
		t.Errorf("%d reads, want 256", sum.Directions[interval.Read].Operations)
	}
	if got, want := messages.String(), "native libaio (io_uring refused: set up io_uring: operation not permitted)"; !strings.Contains(got, want) {
		t.Errorf("engine %q, want %q", got, want)
	}
}

// denyUring answers io_uring_setup with EPERM in all threads of this process.
func denyUring() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: unix.SYS_IO_URING_SETUP},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	return loadFilter(program)
}
