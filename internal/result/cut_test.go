package result_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// steps is how many events, frames of intervals and frames of samples a small bundle has.
const steps = 4

// small writes a small bundle and leaves it unsealed.
func small(t testing.TB, dir string) {
	t.Helper()
	w, err := result.Create(dir, manifest("run-1"))
	if err != nil {
		t.Fatal(err)
	}
	for s := range int64(steps) {
		step(t, w, s)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func step(t testing.TB, w *result.Writer, s int64) {
	t.Helper()
	err := errors.Join(
		w.Interval(anInterval(s)),
		w.Event(interval.Event{AtNanos: s, Kind: interval.EventLog, Message: "m"}),
		w.Sample(result.Sample{AtNanos: s, Name: "a", Labels: map[string]string{"n": string(rune('a' + s))}, Value: float64(s)}),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// read counts what a bundle yields, and checks that it is a beginning of what was written.
func read(t testing.TB, dir string) (events, intervals, samples int, err error) {
	t.Helper()
	b, err := result.Open(dir)
	if err != nil {
		return 0, 0, 0, err
	}
	defer b.Close()
	for e, eventErr := range b.Events() {
		if err = errors.Join(err, eventErr); eventErr == nil {
			if e.AtNanos != int64(events) {
				t.Errorf("event %d is %+v", events, e)
			}
			events++
		}
	}
	for iv, intervalErr := range b.Intervals() {
		if err = errors.Join(err, intervalErr); intervalErr == nil {
			if iv.Sequence != int64(intervals) || iv.Directions[interval.Read].Service.Count() != 3 {
				t.Errorf("interval %d is %+v", intervals, iv)
			}
			intervals++
		}
	}
	for s, sampleErr := range b.Samples() {
		if err = errors.Join(err, sampleErr); sampleErr == nil {
			if s.Value != float64(samples) {
				t.Errorf("sample %d is %+v", samples, s)
			}
			samples++
		}
	}
	return events, intervals, samples, err
}

func content(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func put(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCutAtEveryByte cuts each appended file at every byte: what was whole before the cut is read, nothing else, and
// without an error. Then the bundle can be continued.
func TestCutAtEveryByte(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	small(t, dir)
	for _, name := range []string{"events.ndjson", "intervals.ndjson.zst", "samples.ndjson.zst"} {
		path := filepath.Join(dir, name)
		whole := content(t, path)
		last := 0
		for cut := range len(whole) + 1 {
			put(t, path, whole[:cut])
			events, intervals, samples, err := read(t, dir)
			if err != nil {
				t.Fatalf("%s cut at %d: %v", name, cut, err)
			}
			n := min(events, intervals, samples)
			if n < last {
				t.Fatalf("%s cut at %d yields %d, less than one byte earlier", name, cut, n)
			}
			last = n
		}
		if last != steps {
			t.Errorf("%s: the whole file yields %d", name, last)
		}
	}
}

// TestZeroedTailIsACut: after a power loss a file may have its full length and zeros where data should be.
func TestZeroedTailIsACut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	small(t, dir)
	for _, name := range []string{"events.ndjson", "intervals.ndjson.zst", "samples.ndjson.zst"} {
		path := filepath.Join(dir, name)
		whole := content(t, path)
		put(t, path, append(append([]byte{}, whole...), make([]byte, 5000)...))
		if _, _, _, err := read(t, dir); err != nil {
			t.Errorf("%s with zeros behind: %v", name, err)
		}
		put(t, path, whole)
	}
}

func TestContinueAfterEveryCut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	small(t, dir)
	names := []string{"events.ndjson", "intervals.ndjson.zst", "samples.ndjson.zst"}
	whole := map[string][]byte{}
	for _, name := range names {
		whole[name] = content(t, filepath.Join(dir, name))
	}
	for permille := 0; permille <= 1000; permille += 37 {
		for _, name := range names {
			put(t, filepath.Join(dir, name), whole[name][:len(whole[name])*permille/1000])
		}
		events, intervals, samples, _ := read(t, dir)
		w, err := result.Continue(dir)
		if err != nil {
			t.Fatalf("cut at %d ‰: %v", permille, err)
		}
		err = errors.Join(
			w.Event(interval.Event{AtNanos: int64(events), Kind: interval.EventLog}),
			w.Interval(anInterval(int64(intervals))),
			w.Sample(result.Sample{AtNanos: 1, Name: "a", Labels: map[string]string{"n": "new"}, Value: float64(samples)}),
			w.Close())
		if err != nil {
			t.Fatal(err)
		}
		e, i, s, err := read(t, dir)
		if err != nil || e != events+1 || i != intervals+1 || s != samples+1 {
			t.Fatalf("cut at %d ‰ and continued: %d, %d, %d of %d, %d, %d and one: %v", permille, e, i, s, events, intervals, samples, err)
		}
	}
}

func TestDamageInTheMiddleIsToldApart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	small(t, dir)
	for name, at := range map[string]int{"events.ndjson": 0, "intervals.ndjson.zst": 40, "samples.ndjson.zst": 30} {
		path := filepath.Join(dir, name)
		whole := content(t, path)
		broken := append([]byte{}, whole...)
		broken[at] ^= 0x55
		put(t, path, broken)
		if _, _, _, err := read(t, dir); !errors.Is(err, result.ErrDamaged) {
			t.Errorf("%s with a flipped byte: %v", name, err)
		}
		put(t, path, whole)
	}
}

func TestSealedBundleForgivesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	small(t, dir)
	w, err := result.Continue(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Attach("jobs/oltp.fio", strings.NewReader("[global]\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Seal(result.Summary{Verdict: result.Undecided, Ended: result.EndedAborted}); err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.State() != result.StateAborted || b.VerifySeal() != nil {
		t.Fatalf("state %s, seal: %v", b.State(), b.VerifySeal())
	}
	path := filepath.Join(dir, "intervals.ndjson.zst")
	whole := content(t, path)
	put(t, path, whole[:len(whole)-1])
	if _, _, _, err := read(t, dir); !errors.Is(err, result.ErrDamaged) {
		t.Errorf("a cut in a sealed bundle: %v", err)
	}
	if err := b.VerifySeal(); !errors.Is(err, result.ErrDamaged) {
		t.Errorf("the seal of a cut bundle: %v", err)
	}
	put(t, path, whole)
	put(t, filepath.Join(dir, "attachments", "extra.txt"), []byte("x"))
	if err := b.VerifySeal(); !errors.Is(err, result.ErrDamaged) {
		t.Errorf("an added attachment: %v", err)
	}
	if _, err := result.Continue(dir); err == nil {
		t.Error("a sealed bundle was continued")
	}
	if time.Since(b.Sealed().Sealed) > time.Hour {
		t.Errorf("sealed at %v", b.Sealed().Sealed)
	}
}
