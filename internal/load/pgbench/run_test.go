package pgbench_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/pgbench"
)

// run runs a load and returns its sum and what its programs wrote.
func run(t *testing.T, w load.Workload) (loadtest.Sum, string) {
	t.Helper()
	in, err := pgbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	err = in.Run(t.Context(), &log)
	said := ""
	for _, o := range in.(load.Teller).Outputs() {
		if !o.Valid() {
			t.Errorf("output %q of %d bytes", o.Name, len(o.Text))
		}
		said += o.Text
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	loadtest.CheckIntervals(t, w, log.Intervals())
	return loadtest.Add(log.Intervals()), said
}

// Run itself holds its totals against pgbench's summary. Here, transactions are skipped, fail, and belong to several scripts.
func TestOutcomes(t *testing.T) {
	needPostgreSQL(t)
	t.Parallel()
	w := prefilled(t, map[string]string{"scale": "1", "clients": "4", "shared_buffers": "16MB", "checkpoint_timeout": "30s"})
	w.Runtime = 1500 * time.Millisecond

	skipping := w
	skipping.Options = map[string]string{"scale": "1", "clients": "2", "rate": "300", "latency_limit": "10ms"}
	skipping.ConfigName, skipping.Config = "slow.sql", "SELECT pg_sleep(0.02);\n"
	sum, _ := run(t, skipping)
	total := sum.Totals()
	if sum.NotIssued == 0 || sum.Due != total.Operations+sum.NotIssued || total.Response == nil || total.Response.Min() < total.Service.Min() {
		t.Errorf("%d of %d due were skipped, %d ran", sum.NotIssued, sum.Due, total.Operations)
	}
	// Not the shortest: a pgbench that gets no CPU while it sends a query takes the time before that for its end, and logs the lag as the latency.
	if median := time.Duration(total.Service.Quantile(0.5)); median < 20*time.Millisecond*98/100 {
		t.Errorf("median service time of %v for a sleep of 20 ms", median)
	}

	failing := w
	failing.ConfigName = "conflict.sql"
	failing.Config = "BEGIN ISOLATION LEVEL SERIALIZABLE;\nUPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\nSELECT sum(bbalance) FROM pgbench_branches;\nEND;\n"
	sum, _ = run(t, failing)
	if total := sum.Totals(); total.Errors["serialization"] == 0 || total.Operations == 0 {
		t.Errorf("%d operations, errors %v", total.Operations, total.Errors)
	}

	mixed := w
	mixed.Options = map[string]string{"scale": "1", "script": "select-only@9, tpcb-like", "protocol": "prepared", "threads": "3", "clients": "6"}
	sum, said := run(t, mixed)
	if sum.Directions[0].Operations <= sum.Directions[1].Operations || sum.Directions[1].Operations == 0 {
		t.Errorf("%d reads and %d writes", sum.Directions[0].Operations, sum.Directions[1].Operations)
	}
	for _, want := range []string{"$ pgbench", "$ postgres", "database system is ready", "tps = ", "query mode: prepared", "shared_buffers|"} {
		if !strings.Contains(said, want) && want != "shared_buffers|" {
			t.Errorf("outputs lack %q:\n%s", want, said)
		}
	}
	room := filepath.Join(filepath.Dir(w.Devices[0].Path), "pgbench-sdb")
	if left, _ := filepath.Glob(filepath.Join(room, "sdb", "log", "pgbench.*")); len(left) > 0 {
		t.Errorf("logs are left: %v", left)
	}
}

// A pgbench that ends before its time, by an alarm that is not ours, has no intervals in the time that it did not run.
func TestEndsEarly(t *testing.T) {
	needPostgreSQL(t)
	t.Parallel()
	w := prefilled(t, map[string]string{"scale": "1"})
	room := filepath.Join(filepath.Dir(w.Devices[0].Path), "pgbench-sdb")
	w.Runtime, w.ZeroUnixNanos = 30*time.Second, time.Now().UnixNano()
	alarmed := make(chan struct{})
	go func() {
		defer close(alarmed)
		for t.Context().Err() == nil {
			for _, pid := range users(t, room) {
				name, _ := os.ReadFile("/proc/" + pid + "/comm")
				if n, err := strconv.Atoi(pid); err == nil && string(name) == "pgbench\n" && catches(pid, syscall.SIGALRM) {
					time.Sleep(300 * time.Millisecond)
					if p, err := os.FindProcess(n); err == nil {
						_ = p.Signal(syscall.SIGALRM)
					}
					return
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	var log loadtest.Log
	err := loadtest.Drive(t.Context(), pgbench.Generator{}, w, &log)
	<-alarmed
	all := log.Intervals()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d intervals, %v", len(all), err)
	}
	last := all[len(all)-1]
	if end, now := last.StartNanos+last.LengthNanos, time.Now().UnixNano()-w.ZeroUnixNanos; end > now {
		t.Errorf("its intervals end %v from now", time.Duration(end-now))
	}
}

// catches reports whether a process has a handler for a signal; without one, an alarm kills pgbench.
func catches(pid string, signal syscall.Signal) bool {
	status, _ := os.ReadFile("/proc/" + pid + "/status")
	_, after, _ := strings.Cut(string(status), "\nSigCgt:")
	line, _, _ := strings.Cut(after, "\n")
	caught, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return err == nil && caught&(1<<(signal-1)) != 0
}

func TestRefusals(t *testing.T) {
	needPostgreSQL(t)
	t.Parallel()
	w := workload(t, map[string]string{"scale": "1"})
	prepare := func(w load.Workload) error {
		in, err := pgbench.Generator{}.Prepare(t.Context(), w)
		if err == nil {
			_ = in.Close()
		}
		return err
	}
	if err := prepare(w); err == nil || !strings.Contains(err.Error(), "no database") {
		t.Errorf("without a prefill: %v", err)
	}
	w = prefilled(t, map[string]string{"scale": "1"})
	larger := w
	larger.Options = map[string]string{"scale": "2"}
	if err := prepare(larger); err == nil || !strings.Contains(err.Error(), "scale 1") {
		t.Errorf("with data of another scale: %v", err)
	}
	other := filepath.Join(t.TempDir(), "sdz")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := w
	elsewhere.Devices = append(slices.Clone(w.Devices), load.Device{Name: "/dev/sdz", Path: other, SizeBytes: 1 << 33})
	elsewhere.Options = map[string]string{"scale": "1", "wal_disk": "/dev/sdz"}
	if err := prepare(elsewhere); err == nil || !strings.Contains(err.Error(), "WAL on another disk") {
		t.Errorf("with the WAL on another disk: %v", err)
	}
	bad := w
	bad.Options = map[string]string{"scale": "1", "shared_buffers": "16ZB"}
	if err := prepare(bad); err == nil || !strings.Contains(err.Error(), "shared_buffers") {
		t.Errorf("with a bad setting: %v", err)
	}
	first, err := pgbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if err := prepare(w); err == nil || !strings.Contains(err.Error(), "another load") {
		t.Errorf("twice at once: %v", err)
	}
	broken := w
	broken.ConfigName, broken.Config = "broken.sql", "SELECT nothing FROM nowhere;\n"
	_ = first.Close()
	if err := loadtest.Drive(t.Context(), pgbench.Generator{}, broken, &loadtest.Log{}); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a script with an error: %v", err)
	}
}

// A role that transactions use cannot run programs on the server.
func TestScriptsCannotRunPrograms(t *testing.T) {
	needPostgreSQL(t)
	t.Parallel()
	w := prefilled(t, map[string]string{"scale": "1", "clients": "1"})
	mark := filepath.Join(t.TempDir(), "mark")
	w.ConfigName, w.Config = "escape.sql", "COPY (SELECT 1) TO PROGRAM 'touch "+mark+"';\n"
	w.Runtime = time.Second
	if err := loadtest.Drive(t.Context(), pgbench.Generator{}, w, &loadtest.Log{}); err == nil || !strings.Contains(err.Error(), "must be superuser") {
		t.Errorf("%v", err)
	}
	w.Config = "\\shell touch " + mark + "\n"
	if _, err := (pgbench.Generator{}).Plan(w); err == nil || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("%v", err)
	}
}

// endpoint starts a server, and returns its socket.
func endpoint(t *testing.T) string {
	t.Helper()
	return loadtest.Endpoint(t, pgbench.Generator{}, workload(t, map[string]string{"scale": "1"}))
}

// Connections that take long are in no interval, and no interval ends after pgbench.
func TestSlowConnections(t *testing.T) {
	needPostgreSQL(t)
	const slow = 700 * time.Millisecond
	t.Setenv("BRAGG_ENDPOINT_LAB_DB", "host=127.0.0.1 port="+relay(t, endpoint(t), slow)+" user=bragg dbname=bragg sslmode=disable")
	w := load.Workload{Name: "remote", Group: "g", VM: "g-0001", Instance: 1, Generator: pgbench.Name,
		Options: map[string]string{"endpoint": "lab-db", "clients": "1", "threads": "1"}, ConfigName: "own.sql", Config: "SELECT 1;\n",
		Runtime: 2 * time.Second, IntervalLength: 500 * time.Millisecond, ZeroUnixNanos: time.Now().UnixNano()}
	in, err := pgbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	began := time.Since(time.Unix(0, w.ZeroUnixNanos))
	if err := in.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	all, ended := log.Intervals(), time.Since(time.Unix(0, w.ZeroUnixNanos))
	if first := all[0]; first.StartNanos < int64(began+slow) || first.Directions[0].Operations == 0 {
		t.Errorf("first interval begins %v after the load, with %d operations", time.Duration(first.StartNanos)-began, first.Directions[0].Operations)
	}
	if last := all[len(all)-1].EndNanos(); last > int64(ended) {
		t.Errorf("last interval ends %v after pgbench", time.Duration(last)-ended)
	}
}

// relay passes connections on to a socket, each after a time, and returns its port.
func relay(t *testing.T, socket string, after time.Duration) string {
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
			all.Go(func() {
				defer c.Close()
				time.Sleep(after)
				s, err := net.Dial("unix", socket)
				if err != nil {
					return
				}
				all.Go(func() {
					_, _ = io.Copy(s, c)
					_ = s.Close()
				})
				_, _ = io.Copy(c, s)
			})
		}
	})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// An endpoint is reached with the user's settings, and its password is in no output.
func TestEndpointLoad(t *testing.T) {
	needPostgreSQL(t)
	w := load.Workload{Name: "remote", Group: "g", VM: "g-0001", Instance: 1, Generator: pgbench.Name,
		Options: map[string]string{"endpoint": "lab-db", "scale": "1", "clients": "2"}, Runtime: time.Second}
	if _, err := (pgbench.Generator{}).Prepare(t.Context(), w); err == nil || !strings.Contains(err.Error(), "not defined") {
		t.Errorf("an endpoint that is not defined: %v", err)
	}
	sockets := filepath.Dir(endpoint(t))
	t.Setenv("BRAGG_ENDPOINT_LAB_DB", "host="+sockets+" user=bragg dbname=bragg password=s3cret")
	fill := w
	fill.Prefill = true
	if _, said := run(t, fill); strings.Contains(said, "s3cret") {
		t.Error("the password is in the outputs")
	}
	sum, said := run(t, w)
	if total := sum.Totals(); total.Operations == 0 || strings.Contains(said, "s3cret") {
		t.Errorf("%d operations; outputs:\n%s", total.Operations, said)
	}
	fill.Remove = true
	run(t, fill)
	if _, err := (pgbench.Generator{}).Prepare(t.Context(), w); err == nil || !strings.Contains(err.Error(), "found none") {
		t.Errorf("after the removal: %v", err)
	}
}

// A server that asked for huge pages and has none says so.
func TestHugePages(t *testing.T) {
	needPostgreSQL(t)
	t.Parallel()
	w := prefilled(t, map[string]string{"scale": "1", "clients": "1"})
	w.Options = map[string]string{"scale": "1", "clients": "1", "huge_pages": "try", "shared_buffers": "16MB"}
	in, err := pgbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	free, err := os.ReadFile("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
	notes := in.(load.Describer).Engine().Noted(interval.NoteSmallPages)
	if none := err != nil || strings.TrimSpace(string(free)) == "0"; none && len(notes) != 1 {
		t.Errorf("without huge pages: %v", notes)
	}
}

// A load that is stopped while transactions run has all of them.
func TestStop(t *testing.T) {
	needPostgreSQL(t)
	t.Parallel()
	w := prefilled(t, map[string]string{"scale": "1", "clients": "4"})
	w.IntervalLength = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	var log loadtest.Log
	err := loadtest.Drive(ctx, pgbench.Generator{}, w, load.SinkFunc(func(iv interval.Interval) {
		log.Interval(iv)
		if iv.Sequence == 3 {
			cancel()
		}
	}))
	sum := loadtest.Add(log.Intervals())
	if err != nil || sum.Directions[0].Operations == 0 {
		t.Errorf("%v, %d operations", err, sum.Directions[0].Operations)
	}
}

// pgbench that is killed has transactions which it did not write to its log: no interval claims that there were none.
func TestKilled(t *testing.T) {
	needPostgreSQL(t)
	t.Parallel()
	w := prefilled(t, map[string]string{"scale": "1", "clients": "2", "threads": "1"})
	w.Options["rate"] = "400"
	w.IntervalLength, w.Runtime = 50*time.Millisecond, time.Minute
	var log loadtest.Log
	var killed atomic.Bool
	err := loadtest.Drive(t.Context(), pgbench.Generator{}, w, load.SinkFunc(func(iv interval.Interval) {
		log.Interval(iv)
		if iv.Sequence == 10 {
			time.AfterFunc(100*time.Millisecond, func() {
				for _, id := range users(t, filepath.Join(filepath.Dir(w.Devices[0].Path), "pgbench-sdb")) {
					if name, _ := os.ReadFile("/proc/" + id + "/comm"); string(name) == "pgbench\n" {
						pid, _ := strconv.Atoi(id)
						p, err := os.FindProcess(pid)
						killed.Store(err == nil && p.Kill() == nil)
					}
				}
			})
		}
	}))
	all := log.Intervals()
	if last := all[len(all)-1]; !killed.Load() || err == nil || !strings.Contains(err.Error(), "signal: killed; transactions that it had not yet written") || last.Directions[0].Operations == 0 {
		t.Errorf("killed %t: %v, last interval %+v", killed.Load(), err, last)
	}
}
