package rollup

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result/frame"
	"github.com/braggdev/bragg/internal/stat"
)

// files writes frames of intervals of two VMs, a second each, and returns the folder of a bundle.
func files(t *testing.T, seconds int64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	encoder, err := frame.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	var packed []byte
	for s := range seconds {
		var text []byte
		for _, vm := range []string{"a", "b"} {
			iv := interval.Interval{Workload: "w", Group: "g", VM: vm, Instance: 1, Sequence: s, StartNanos: s * 1e9, LengthNanos: 1e9}
			h := &stat.Histogram{}
			h.RecordN(uint64(1e9+s), 3)
			iv.Directions[0] = interval.Traffic{Operations: 3, Bytes: 3, Service: h}
			text = append(interval.AppendJSON(text, &iv), '\n')
		}
		packed = encoder.EncodeAll(text, packed)
	}
	if err := os.WriteFile(filepath.Join(dir, "intervals"), packed, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// roll writes rollups of everything.
func roll(t *testing.T, dir string) {
	t.Helper()
	folder, err := durable.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	w, err := NewWriter(folder, "intervals", "rollups")
	if err != nil {
		t.Fatal(err)
	}
	w.Reached(300e9)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// counts reads everything and returns how many intervals, merged ones and operations there are.
func counts(t *testing.T, s Source, cuts Cuts) (each, merged int, operations, recorded uint64) {
	t.Helper()
	for b, err := range s.Batches(t.Context(), cuts) {
		if err != nil {
			t.Fatal(err)
		}
		each, merged = each+len(b.Each), merged+len(b.Merged)
		for i := range b.Merged {
			operations += b.Merged[i].Directions[0].Operations
			recorded += b.Merged[i].Directions[0].Service.Count()
		}
	}
	return each, merged, operations, recorded
}

// TestWriterContinues: a Writer goes on after the last record that matches the intervals, and records change nothing but how much is
// merged.
func TestWriterContinues(t *testing.T) {
	dir := files(t, 300)
	roll(t, dir)
	names := filepath.Join(dir, "rollups")
	whole, err := os.ReadFile(names)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		text []byte
	}{{"whole", whole}, {"cut", whole[:len(whole)-1]}, {"another file", bytes.Repeat([]byte("x"), 999)}, {"empty", nil}} {
		if err := os.WriteFile(names, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		roll(t, dir)
		if again, err := os.ReadFile(names); err != nil || !bytes.Equal(again, whole) {
			t.Errorf("%s: continued to %d bytes, %v, want the %d of a writer that was not interrupted", c.name, len(again), err, len(whole))
		}
	}
}

// TestCuts: an interval at a cut is alone, and nothing is lost or read twice.
func TestCuts(t *testing.T) {
	dir := files(t, 300)
	roll(t, dir)
	source := Source{}
	for path, to := range map[string]*file{"intervals": &source.Intervals, "rollups": &source.Rollups} {
		f, err := os.Open(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		*to = f
	}
	for _, c := range []struct {
		name   string
		cuts   Cuts
		merged int
	}{
		{"none", Cuts{}, 2},
		{"cells of a minute", Cuts{Cells: []Division{{0, 60e9}}}, 10},
		{"cells that no record fits", Cuts{Cells: []Division{{0, 45e9}}}, 14},
		{"within a second", Cuts{AtNanos: []int64{100.5e9}}, 6},
		{"between seconds", Cuts{AtNanos: []int64{100e9}}, 8},
		{"before and after everything", Cuts{AtNanos: []int64{-1e9, 400e9}}, 2},
	} {
		for _, s := range []Source{source, {Intervals: source.Intervals}} {
			each, merged, operations, recorded := counts(t, s, c.cuts)
			if each != 600 || merged != c.merged || operations != 1800 || recorded != 1800 {
				t.Errorf("%s, records %t: %d intervals, %d merged with %d operations, %d latencies; want 600, %d, 1800", c.name, s.Rollups != nil, each, merged, operations, recorded, c.merged)
			}
		}
	}
}

// TestForgedRecord: a record that matches the intervals but is wrong about itself is as if it were not there.
func TestForgedRecord(t *testing.T) {
	dir := files(t, 90)
	f, err := os.Open(filepath.Join(dir, "intervals"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	honest := header{}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	scanner := frame.Scanner{File: f, Size: info.Size()}
	var spans []span
	for at, length, err := scanner.Next(); err == nil; at, length, err = scanner.Next() {
		spans = append(spans, span{at, length})
		honest.Ends = append(honest.Ends, at+length)
	}
	if honest.Check, err = checksum(f, spans); err != nil {
		t.Fatal(err)
	}
	encoder, err := frame.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	merged := interval.Interval{Workload: "w", VM: "a", Instance: 1, LengthNanos: 1e9}
	merged.Directions[0] = interval.Traffic{Operations: 3, Service: &stat.Histogram{}}
	merged.Directions[0].Service.RecordN(1e9, 3)
	good := interval.AppendMerged(nil, &merged)
	for _, c := range []struct {
		name                       string
		line                       []byte
		intervals, merged, seconds int
	}{
		{"numbers that overflow", good, math.MaxInt, math.MaxInt, 3},
		{"negative numbers", good, -1, 2, 0},
		{"no numbers", good, 0, 0, 1},
		{"too many", good, 1 << 40, 1, 0},
		{"a histogram that differs from its totals", bytes.Replace(good, []byte(`3"}`), []byte(`9"}`), 1), 0, 1, 0},
		{"a histogram that is none", bytes.Replace(good, []byte(`"b":"`), []byte(`"b":"?`), 1), 0, 1, 0},
		{"not a number", bytes.Replace(good, []byte(`"start_ns":0`), []byte(`"start_ns":NaN`), 1), 0, 1, 0},
	} {
		h := honest
		h.Intervals, h.Merged, h.Seconds = c.intervals, c.merged, c.seconds
		head, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		packed := encoder.EncodeAll(append(bytes.Clone(c.line), '\n'), encoder.EncodeAll(append(head, '\n'), nil))
		if each, _, operations, _ := counts(t, Source{Intervals: f, Rollups: memoryFile(t, packed)}, Cuts{}); each != 180 || operations != 540 {
			t.Errorf("%s: %d intervals, %d operations, want 180, 540", c.name, each, operations)
		}
	}
}

func memoryFile(t *testing.T, text []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}
