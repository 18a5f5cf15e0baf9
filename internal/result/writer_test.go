package result_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/testreq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func create(t testing.TB, dir string) *result.Writer {
	t.Helper()
	w, err := result.Create(dir, manifest(filepath.Base(dir)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func TestWriterFromManyGoroutines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	w := create(t, dir)
	const vms, each = 8, 200
	var wait sync.WaitGroup
	for vm := range vms {
		wait.Go(func() {
			for s := range int64(each) {
				iv := anInterval(s)
				iv.VM = fmt.Sprintf("g-%04d", vm)
				if err := errors.Join(w.Interval(iv), w.Event(interval.Event{Subject: iv.VM}),
					w.Sample(result.Sample{Name: "a", Labels: map[string]string{"vm": iv.VM}})); err != nil {
					t.Error(err)
					return
				}
				if s%50 == 0 {
					_ = w.Flush()
				}
			}
		})
	}
	wait.Wait()
	if err := w.Seal(result.Summary{Ended: result.EndedCompleted}); err != nil {
		t.Fatal(err)
	}
	next := map[string]int64{}
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for iv, err := range b.Intervals() {
		if err != nil || iv.Sequence != next[iv.VM] {
			t.Fatalf("%s: interval %d after %d: %v", iv.VM, iv.Sequence, next[iv.VM], err)
		}
		next[iv.VM]++
	}
	if len(next) != vms || next["g-0000"] != each {
		t.Errorf("read %v", next)
	}
}

func TestWriterRefusesASecondOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	w := create(t, dir)
	if _, err := result.Create(dir, manifest("run-1")); err == nil {
		t.Error("a bundle was created over another")
	}
	if _, err := result.Continue(dir); !errors.Is(err, result.ErrBusy) {
		t.Errorf("continue beside a writer: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Event(interval.Event{}); !errors.Is(err, result.ErrClosed) {
		t.Errorf("an event after Close: %v", err)
	}
	if err := w.Seal(result.Summary{}); !errors.Is(err, result.ErrClosed) {
		t.Errorf("Seal after Close: %v", err)
	}
	again, err := result.Continue(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Seal(result.Summary{}); err != nil {
		t.Fatal(err)
	}
	if _, err := result.Continue(dir); !errors.Is(err, result.ErrSealed) {
		t.Errorf("continue a sealed bundle: %v", err)
	}
}

// TestIntervalsReachTheKernelWithinSeconds: what a killed process loses is bounded, without anybody calling Flush.
func TestIntervalsReachTheKernelWithinSeconds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	w := create(t, dir)
	if err := w.Interval(anInterval(0)); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if _, n, _, err := read(t, dir); err != nil {
			t.Fatal(err)
		} else if n == 1 {
			break
		}
		if time.Since(begin) > time.Minute { // a hang guard
			t.Fatal("the interval was never written")
		}
	}
}

// TestFullDisk fills a real file system: the writer tells, and the run can still be sealed and read.
func TestFullDisk(t *testing.T) {
	testreq.Root(t)
	testreq.Program(t, "mount")
	mnt := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=6m", "bragg-test", mnt).CombinedOutput(); err != nil {
		testreq.Skip(t, "cannot mount a tmpfs: "+string(out))
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mnt, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(mnt, "run-1")
	w, err := result.Create(dir, manifest("run-1"))
	if err != nil {
		t.Fatal(err)
	}
	filler, err := os.Create(filepath.Join(mnt, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	if err := w.Interval(anInterval(0)); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := filler.Write(make([]byte, 4096)); err != nil {
			break
		}
	}
	written := int64(1)
	for err = nil; err == nil && written < 10_000; written++ { // the last page of the file takes some more
		if err = w.Interval(anInterval(written)); err == nil {
			err = w.Flush()
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("flush on a full disk: %v", err)
	}
	<-w.Failed()
	if err := w.Interval(anInterval(written)); !errors.Is(err, syscall.ENOSPC) || !errors.Is(w.Err(), syscall.ENOSPC) {
		t.Errorf("an interval after the disk was full: %v", err)
	}
	if err := w.Event(interval.Event{Kind: interval.EventDisturbance, Message: "disk full"}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the first error is kept: %v", err)
	}
	if err := w.Seal(result.Summary{Verdict: result.Undecided, Ended: result.EndedFailed}); err != nil {
		t.Fatalf("seal on a full disk: %v", err)
	}
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.VerifySeal(); err != nil {
		t.Error(err)
	}
	intervals := int64(0)
	for _, err := range b.Intervals() {
		if err != nil {
			t.Fatal(err)
		}
		intervals++
	}
	events := 0
	for e, err := range b.Events() {
		if err != nil || e.Message != "disk full" {
			t.Fatal(e, err)
		}
		events++
	}
	if intervals != written || events != 1 {
		t.Errorf("read %d intervals of %d and %d events", intervals, written, events)
	}
}

func TestAttachments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	w := create(t, dir)
	for _, name := range []string{"../../evil", "/etc/passwd", "", ".", "..", "a/../b", ".hidden", "a/.b", `a\b`, "a//b", "a\x00b", strings.Repeat("x", 300)} {
		if err := w.Attach(name, strings.NewReader("x")); err == nil {
			t.Errorf("attached %q", name)
		}
	}
	if err := w.Attach("jobs/oltp.fio", strings.NewReader("[oltp]\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Attach("test.yml", strings.NewReader("name: x\n")); err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	names, err := b.Attachments()
	if err != nil || strings.Join(names, " ") != "jobs/oltp.fio test.yml" {
		t.Errorf("attachments %q, %v", names, err)
	}
	if _, err := b.Attachment("../manifest.json"); err == nil {
		t.Error("opened a file outside the attachments")
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "attachments", "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Attachment("link"); err == nil {
		t.Error("followed a link out of the bundle")
	}
}

func TestSamplesSurviveEveryValue(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	w := create(t, dir)
	values := []float64{0, -0.5, 1e300, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxUint64}
	for i, v := range values {
		if err := w.Sample(result.Sample{AtNanos: int64(i), Name: `odd "name"`, Labels: map[string]string{"l": "\x00é\n"}, Value: v}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	i := 0
	for s, err := range b.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		same := s.Value == values[i] || math.IsNaN(s.Value) && math.IsNaN(values[i])
		if !same || s.AtNanos != int64(i) || s.Name != `odd "name"` || s.Labels["l"] != "\x00é\n" {
			t.Errorf("sample %d: %+v", i, s)
		}
		i++
	}
	if i != len(values) {
		t.Errorf("read %d samples", i)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		manifest string
		want     error
	}{
		"newer format":   {`{"format":2}`, result.ErrNewer},
		"no format":      {`{}`, result.ErrDamaged},
		"not JSON":       {`run: 1`, result.ErrDamaged},
		"wrong types":    {`{"format":1,"run":7}`, result.ErrDamaged},
		"nothing at all": {``, result.ErrDamaged},
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "manifest.json"), []byte(c.manifest))
		if _, err := result.Open(dir); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := result.Open(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "manifest.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := result.Open(dir); !errors.Is(err, result.ErrDamaged) {
		t.Errorf("a pipe instead of a manifest: %v", err)
	}
}

func TestListFindRemove(t *testing.T) {
	runs := t.TempDir()
	ids := []string{"20260101-000000-aaaaa", "20260102-000000-aabbb", "20260103-000000-ccccc"}
	for i, id := range ids {
		m := manifest(id)
		m.Created = m.Created.Add(time.Duration(i) * time.Hour)
		w, err := result.Create(filepath.Join(runs, id), m)
		if err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			err = w.Seal(result.Summary{Verdict: result.Pass, Ended: result.EndedCompleted})
		} else {
			defer w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(runs, "stray.txt"), nil)
	if err := os.MkdirAll(filepath.Join(runs, "broken"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(runs, "broken", "manifest.json"), []byte("{"))
	all, err := result.List(runs)
	if err != nil || len(all) != 4 {
		t.Fatalf("%d runs, %v", len(all), err)
	}
	if first := all[0]; first.Manifest.Run != ids[2] || !first.Live || first.State != result.StateRunning || first.Seal != nil {
		t.Errorf("newest: %+v", first)
	}
	if second := all[1]; second.Live || second.Seal.Verdict != result.Pass {
		t.Errorf("second: %+v", second)
	}
	if all[3].Err == nil {
		t.Error("the broken one is listed without its error")
	}
	for _, id := range []string{"", ".", "..", "../x", "a/b", "none", "stray.txt"} {
		if err := result.Remove(runs, id); err == nil {
			t.Errorf("removed %q", id)
		}
	}
	if err := result.Remove(runs, ids[2]); !errors.Is(err, result.ErrBusy) {
		t.Errorf("remove a live run: %v", err)
	}
	if err := result.Remove(runs, ids[0]); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(runs, ids[0])); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
	outside := t.TempDir()
	put(t, filepath.Join(outside, "manifest.json"), []byte(`{"format":1}`))
	if err := os.Symlink(outside, filepath.Join(runs, "link")); err != nil {
		t.Fatal(err)
	}
	if err := result.Remove(runs, "link"); err == nil {
		t.Error("removed what a link leads to")
	}
	if none, err := result.List(filepath.Join(runs, "missing")); err != nil || none != nil {
		t.Errorf("a missing directory: %v, %v", none, err)
	}
}

func FuzzReadStreams(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "run-1")
	small(f, dir)
	f.Add(content(f, filepath.Join(dir, "events.ndjson")), content(f, filepath.Join(dir, "intervals.ndjson.zst")),
		content(f, filepath.Join(dir, "samples.ndjson.zst")))
	f.Add([]byte("{}\n\n"), []byte{0x28, 0xb5, 0x2f, 0xfd}, []byte(nil))
	open := f.TempDir()
	put(f, filepath.Join(open, "manifest.json"), []byte(`{"format":1}`))
	f.Fuzz(func(t *testing.T, events, intervals, samples []byte) {
		put(t, filepath.Join(open, "events.ndjson"), events)
		put(t, filepath.Join(open, "intervals.ndjson.zst"), intervals)
		put(t, filepath.Join(open, "samples.ndjson.zst"), samples)
		b, err := result.Open(open)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		// Nothing may crash or hang, and every fault is reported as damage.
		for _, err := range b.Events() {
			judge(t, err)
		}
		for iv, err := range b.Intervals() {
			judge(t, err)
			_ = iv.Totals()
		}
		for _, err := range b.Samples() {
			judge(t, err)
		}
	})
}

func judge(t *testing.T, err error) {
	if err != nil && !errors.Is(err, result.ErrDamaged) {
		t.Fatal(err)
	}
}
