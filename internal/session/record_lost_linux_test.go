package session_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session"
)

// saboteur harms the bundle of a run when its wait begins.
type saboteur struct {
	before, during func(dir string) error // the first I/O, the wait; may be nil
	remote         string                 // another store that is written to

	dir    string
	mu     sync.Mutex
	err    error
	events []interval.Event
}

func (s *saboteur) Begin(_ *plan.Plan, dir string) {
	s.dir = dir
	if s.before != nil {
		s.err = s.before(dir)
	}
}
func (*saboteur) Interval(interval.Interval) {}
func (s *saboteur) Event(e interval.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	if e.Kind == interval.EventStepStarted && e.Step == "test.Wait" && s.during != nil {
		s.err = s.during(s.dir)
	}
}

// sabotaged carries a run out here that writes for so many seconds, with bundles in runs.
func sabotaged(t *testing.T, runs, seconds string, s *saboteur) (session.Outcome, error) {
	t.Helper()
	text := strings.NewReplacer("WORKLOADS", "[Writes: {vm_group: db, config_file: writes.fio}]", "duration_secs: 3000", "duration_secs: "+seconds,
		"results: []", `results: [Asked: {query: "sum(rate(bragg_operations_total[4s]))"}]`, "STEPS", `
  - vm_group.PowerOn: {vm_group_name: db}
  - workload.Start: {workload_name: Writes, runtime_secs: `+seconds+`, async: True}`).Replace(fullScenario)
	source := fullSource("", "")
	source.FS.(fstest.MapFS)["test.yml"].Data = []byte(text)
	p, err := session.Prepare(t.Context(), session.Order{Source: source, Runs: runs, Target: "local",
		Plan: planner.Options{FullPercentMax: 100}, Program: program(runs), RemoteWrite: metric.RemoteOptions{URL: s.remote}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, err := p.Run(t.Context(), session.RunOptions{Watcher: s})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return out, err
}

// nothingIsLeft checks that all processes of the run's VMs are gone, and that clean has nothing to do except sealing.
func nothingIsLeft(t *testing.T, runs, dir string) {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range commands {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), dir) {
			t.Errorf("a process is left: %q", text)
		}
	}
	cleaned, err := session.Clean(t.Context(), session.Cleaning{Runs: runs, Program: program(runs)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cleaned {
		if c.Err != nil || len(c.Undone) > 0 {
			t.Errorf("cleaned %+v", c)
		}
	}
}

// TestRemovedBundleStopsTheRun: a run that cannot be recorded is stopped. The folder may reappear empty, or with another
// file in place of one of Bragg.
func TestRemovedBundleStopsTheRun(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"renamed": func(dir string) error { return os.Rename(dir, dir+"-old") },
		"replaced by a link": func(dir string) error {
			elsewhere := filepath.Join(filepath.Dir(dir), elsewhereName)
			return errors.Join(os.Rename(dir, dir+"-old"), os.Mkdir(elsewhere, 0o700), os.Symlink(elsewhere, dir))
		},
		"events replaced": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "events.ndjson")), os.WriteFile(filepath.Join(dir, "events.ndjson"), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := t.TempDir()
			s := &saboteur{during: harm}
			out, err := sabotaged(t, runs, "3000", s)
			reason := out.Reason
			if err != nil {
				reason = err.Error()
			}
			if code := max(diag.ExitCode(err), out.Exit); code != diag.ExitUndecided || !strings.Contains(reason, "during the run") {
				t.Errorf("exit code %d, %v, outcome %+v", code, err, out)
			}
			if name == "replaced by a link" { // which clean refuses to follow, and leaves to the user
				cleaned, err := session.Clean(t.Context(), session.Cleaning{Runs: runs, Program: program(runs)})
				if err != nil || len(cleaned) == 0 || !errors.Is(cleaned[0].Err, durable.ErrForeign) {
					t.Errorf("clean: %+v, %v", cleaned, err)
				}
				if err := os.Remove(s.dir); err != nil {
					t.Error(err)
				}
			}
			nothingIsLeft(t, runs, s.dir)
			if files, err := os.ReadDir(filepath.Join(runs, elsewhereName)); err == nil && len(files) > 0 {
				t.Errorf("%v was written through a link", files)
			}
		})
	}
}

// elsewhereName is a folder that is none of the run's.
const elsewhereName = "of-another-run"

// TestFullRecordStopsTheRun: the file system of the runs folder has no room left. The disks of VMs lie there too.
func TestFullRecordStopsTheRun(t *testing.T) {
	t.Parallel()
	runs := smallStorage(t)
	fill := func(string) error {
		f, err := os.Create(filepath.Join(runs, "foreign"))
		if err != nil {
			return err
		}
		for _, size := range []int{1 << 20, 1 << 12} {
			for err = nil; err == nil; {
				_, err = f.Write(make([]byte, size))
			}
		}
		if !errors.Is(err, unix.ENOSPC) {
			return err
		}
		return f.Close()
	}
	s := &saboteur{during: fill}
	out, err := sabotaged(t, runs, "3000", s)
	if err != nil || out.Exit != diag.ExitUndecided || out.Ended != result.EndedFailed || len(out.Left) > 0 {
		t.Fatalf("%v, %+v", err, out)
	}
	if !strings.Contains(out.Reason, "free on the file system") && !strings.Contains(out.Reason, "no space left") {
		t.Errorf("the reason is %q", out.Reason)
	}
	b, err := result.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.VerifySeal(); err != nil {
		t.Error(err)
	}
	nothingIsLeft(t, runs, s.dir)
}

// TestLostMetricStoreCostsNothing: the store is a cache. A run whose store breaks continues to its end, reports it, and
// still answers queries.
func TestLostMetricStoreCostsNothing(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	var taken atomic.Int64
	remote := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken.Add(1) }))
	defer remote.Close()
	s := &saboteur{remote: remote.URL, before: func(dir string) error {
		return os.WriteFile(filepath.Join(dir, metric.Dir), nil, 0o600) // a file where the store's folder would be
	}}
	out, err := sabotaged(t, runs, "5", s)
	if err != nil || out.Exit != diag.ExitPass || out.Ended != result.EndedCompleted {
		t.Fatalf("%v, %+v", err, out)
	}
	said := ""
	for _, e := range s.events {
		if e.Subject == "metric store" {
			said += e.Message
		}
	}
	if !strings.Contains(said, "lost: ") || !strings.Contains(said, "answered from the record") {
		t.Errorf("it said %q", said)
	}
	b, err := result.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	summary, err := b.Summary()
	if err != nil {
		t.Fatal(err)
	}
	if len(summary.Results) == 0 || summary.Results[0].Missing != "" || len(summary.Results[0].Series) != 1 {
		t.Errorf("the query's result is %+v", summary.Results)
	}
	if _, err := os.Stat(filepath.Join(s.dir, metric.Dir)); err == nil {
		t.Error("a broken store is kept")
	}
	if taken.Load() == 0 {
		t.Error("the other store got nothing")
	}
}

// TestHangingRemoteStoreCostsNothing: a remote store that answers slowly at first, and then no more, delays the end of a run by a bounded
// time. The bundle is whole, and the report says what the store lacks.
func TestHangingRemoteStoreCostsNothing(t *testing.T) {
	t.Parallel()
	const slow = 300 * time.Millisecond
	var taken atomic.Int64
	remote := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if taken.Add(1) > 3 {
			<-r.Context().Done()
			return
		}
		time.Sleep(slow)
	}))
	defer remote.Close()
	s := &saboteur{remote: remote.URL}
	out, err := sabotaged(t, t.TempDir(), "5", s)
	if err != nil || out.Exit != diag.ExitPass || out.Ended != result.EndedCompleted {
		t.Fatalf("%v, %+v", err, out)
	}
	b, err := result.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.VerifySeal(); err != nil {
		t.Error(err)
	}
	summary, err := b.Summary()
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(summary.Caveats, " "); !strings.Contains(text, "lacks ") || !strings.Contains(text, "the bundle has all of them") {
		t.Errorf("the report says %q", text)
	}
	if r := summary.Results[0]; r.Missing != "" || len(r.Series) == 0 {
		t.Errorf("the query has no answer: %+v", r)
	}
}
