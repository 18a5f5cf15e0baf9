package fiolog_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iojob/fiolog"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/testreq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var both = [interval.DirectionCount]bool{true, true, false}

// write gives operations to the logs of one clone and returns their lines by suffix of the name.
func write(t interface{ Fatal(...any) }, dir string, logs fiojob.Logs, from, end int64, operations []ioengine.Completed) map[string][][]int64 {
	set, err := fiolog.New([]fiolog.Clone{{Name: "j", Number: 1, Logs: logs, Directions: both}}, fiolog.Options{
		Path: func(name string) string { return filepath.Join(dir, name) }, ZeroUnixNanos: func() int64 { return 1_000_000e9 },
	})
	if err != nil {
		t.Fatal(err)
	}
	r := set.Recorder(0)
	r.Begin(from)
	for len(operations) > 0 {
		n := min(7, len(operations))
		r.Completed(operations[:n])
		operations = operations[n:]
	}
	r.End(end)
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	out := map[string][][]int64{}
	paths, _ := filepath.Glob(filepath.Join(dir, "j_*.log"))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "j_"), ".1.log")
		out[name] = numbers(t, string(text))
	}
	return out
}

func numbers(t interface{ Fatal(...any) }, text string) [][]int64 {
	out := [][]int64{}
	for line := range strings.Lines(text) {
		var row []int64
		for field := range strings.SplitSeq(strings.TrimSuffix(line, "\n"), ", ") {
			n, err := strconv.ParseInt(field, 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, n)
		}
		out = append(out, row)
	}
	return out
}

func all() fiojob.Logs {
	on := fiojob.Log{On: true}
	return fiojob.Logs{Bandwidth: on, Latency: on, IOPS: on, Histogram: on}
}

// Each operation is a line with the values that fio puts there; what failed, flushed or ramped up is none.
func TestEachOperation(t *testing.T) {
	operations := []ioengine.Completed{
		{Offset: 8192, Size: 4096, Result: 4096, Intended: 1_000, Submitted: 11_000, Returned: 12_500, Completed: 31_000, Measured: true},
		{Size: 4096, Result: -5, Submitted: 40_000, Completed: 50_000, Measured: true},
		{Size: 4096, Result: 4096, Submitted: 40_000, Completed: 50_000},
		{Submitted: 40_000, Completed: 50_000, Sync: true, Measured: true},
		{Size: 65536, Result: 65536, Intended: 2e6, Submitted: 2e6, Completed: 3_000_000, Measured: true, Direction: interval.Write},
	}
	logs := all()
	logs.Offset, logs.Priority = true, true
	got := write(t, t.TempDir(), logs, 1_000, 4e6, operations)
	want := map[string][][]int64{
		"bw":        {{0, 204800, 0, 4096, 8192, 0}, {2, 65536, 1, 65536, 0, 0}},
		"iops":      {{0, 1, 0, 4096, 8192, 0}, {2, 1, 1, 65536, 0, 0}},
		"lat":       {{0, 30_000, 0, 4096, 8192, 0}, {2, 1_000_000, 1, 65536, 0, 0}},
		"clat":      {{0, 20_000, 0, 4096, 8192, 0}, {2, 1_000_000, 1, 65536, 0, 0}},
		"slat":      {{0, 1_500, 0, 4096, 8192, 0}},
		"clat_hist": {},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

// drawOperations makes operations in order of completion, and when the load ended.
func drawOperations(t *rapid.T) (operations []ioengine.Completed, end int64) {
	at := int64(5_000)
	for range rapid.IntRange(0, 300).Draw(t, "operations") {
		at += rapid.Int64Range(0, 40e6).Draw(t, "gap")
		took := rapid.Int64Range(0, 1<<34).Draw(t, "took") >> rapid.IntRange(0, 34).Draw(t, "shift")
		operations = append(operations, ioengine.Completed{
			Size: 4096, Result: 4096, Intended: at - took, Submitted: at - took, Returned: at, Completed: at, Measured: true,
			Direction: interval.Direction(rapid.IntRange(0, 1).Draw(t, "direction")),
		})
	}
	return operations, at + rapid.Int64Range(0, 300e6).Draw(t, "rest")
}

// Windows follow each other without a gap up to the end of the load, and what they say adds up to what was done.
func TestWindowsAddUp(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		operations, end := drawOperations(rt)
		logs := all()
		logs.AverageMillis = rapid.IntRange(1, 400).Draw(rt, "window")
		got := write(rt, dir, logs, 5_000, end, operations)
		var done [2]float64
		for _, o := range operations {
			done[o.Direction]++
		}
		length := int64(logs.AverageMillis)
		var last, sums, tolerance [2]float64
		for _, line := range got["iops"] {
			d := line[2]
			took := float64(line[0]) - last[d]
			if took > float64(length)*1.1+1 || took < 0 {
				rt.Fatalf("a window of %v ms, want %d", took, length)
			}
			last[d] = float64(line[0])
			sums[d] += float64(line[1]) * took / 1000
			tolerance[d] += took/1000 + float64(line[1])/1000*2 // rates and times are whole numbers
		}
		for d := range done {
			if want := float64((end - 5_000) / 1e6); last[d] != want {
				rt.Fatalf("the last window ends at %v ms, the load at %v", last[d], want)
			}
			if math.Abs(sums[d]-done[d]) > 1+tolerance[d] {
				rt.Fatalf("direction %d: windows say %v operations, %v were done", d, sums[d], done[d])
			}
		}
	})
}

// Histograms hold every operation, each in fio's bucket for its latency, the last piece too.
func TestHistogramsHoldEverything(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		operations, end := drawOperations(rt)
		logs := all()
		logs.HistogramMillis, logs.Coarseness = rapid.IntRange(1, 900).Draw(rt, "window"), rapid.IntRange(0, 6).Draw(rt, "coarseness")
		got := write(rt, dir, logs, 5_000, end, operations)
		columns := fiolog.BucketCount >> logs.Coarseness
		want, have := make([]int64, columns), make([]int64, columns)
		for _, o := range operations {
			want[fiolog.Bucket(uint64(o.Completed-o.Submitted))>>logs.Coarseness]++
		}
		last := int64(0)
		for _, line := range got["clat_hist"] {
			if len(line) != columns+3 || line[0] < last || line[0] > (end-5_000)/1e6 {
				rt.Fatalf("line at %d after %d with %d columns, want %d", line[0], last, len(line), columns+3)
			}
			last = line[0]
			for i, n := range line[3:] {
				have[i] += n
			}
		}
		if fmt.Sprint(have) != fmt.Sprint(want) {
			rt.Fatalf("have %v\nwant %v", have, want)
		}
	})
}

// A bucket holds what fio's does: one value below 128, then 64 buckets for each power of two.
func TestBuckets(t *testing.T) {
	low := func(i int) uint64 {
		if i < 128 {
			return uint64(i)
		}
		return uint64(64+i%64) << (i/64 - 1)
	}
	for i := range fiolog.BucketCount {
		if got := fiolog.Bucket(low(i)); got != i {
			t.Fatalf("%d is in bucket %d, want %d", low(i), got, i)
		}
		if i+1 < fiolog.BucketCount {
			if got := fiolog.Bucket(low(i+1) - 1); got != i {
				t.Fatalf("%d is in bucket %d, want %d", low(i+1)-1, got, i)
			}
		}
	}
	if got := fiolog.Bucket(math.MaxUint64); got != fiolog.BucketCount-1 {
		t.Errorf("the largest value is in bucket %d", got)
	}
}

func TestWindowValues(t *testing.T) {
	var operations []ioengine.Completed
	for i := range int64(10) {
		at := 10e6 * (i + 1)
		operations = append(operations, ioengine.Completed{Size: 1024, Result: 1024, Intended: at - 100*(i+1), Submitted: at - 100*(i+1), Completed: at, Measured: true})
	}
	for window, want := range map[string]string{
		"": "[[100 550 0 0 0]]", "avg": "[[100 550 0 0 0]]", "max": "[[100 1000 0 0 0]]", "both": "[[100 550 1000 0 0 0]]",
	} {
		logs := all()
		logs.AverageMillis, logs.Window = 1000, window
		got := write(t, t.TempDir(), logs, 0, 100e6, operations)
		rates := "[[100 100 0 0 0] [100 0 1 0 0]]"
		if window == "both" {
			rates = "[[100 100 100 0 0 0] [100 0 0 1 0 0]]"
		}
		if fmt.Sprint(got["lat"]) != want || fmt.Sprint(got["bw"]) != rates || fmt.Sprint(got["iops"]) != rates {
			t.Errorf("%q: lat %v, bw %v", window, got["lat"], got["bw"])
		}
	}
	logs := all()
	logs.Window = "both" // single operations have no largest, and the column all the same
	if got := write(t, t.TempDir(), logs, 0, 100e6, operations[:1]); fmt.Sprint(got["lat"], got["iops"]) != "[[10 100 0 0 1024 0]] [[10 1 0 0 1024 0]]" {
		t.Errorf("both of single operations: %v, %v", got["lat"], got["iops"])
	}
	logs = all()
	logs.Epoch = true
	if got := write(t, t.TempDir(), logs, 5e9, 6e9, operations[:0:0]); len(got["bw"]) != 0 {
		t.Errorf("lines of nothing: %v", got)
	}
	operations[0].Completed, operations[0].Submitted = 5e9, 5e9
	if got := write(t, t.TempDir(), logs, 5e9, 6e9, operations[:1]); got["bw"][0][0] != 1_000_005_000 {
		t.Errorf("wall time is %d", got["bw"][0][0])
	}
}

// Clones without logs of their own add to one file, also to what an earlier run left there, as fio does.
func TestSharedLogs(t *testing.T) {
	dir := t.TempDir()
	logs := fiojob.Logs{IOPS: fiojob.Log{On: true, Prefix: "x"}, Shared: true}
	for range 2 {
		set, err := fiolog.New([]fiolog.Clone{{Name: "a", Number: 1, Logs: logs}, {Name: "b", Number: 2}, {Name: "c", Number: 3, Logs: logs}},
			fiolog.Options{Path: func(name string) string { return filepath.Join(dir, name) }})
		if err != nil {
			t.Fatal(err)
		}
		if set.Recorder(1) != nil {
			t.Error("a clone without logs has a recorder")
		}
		for _, i := range []int{0, 2} {
			r := set.Recorder(i)
			r.Begin(0)
			r.Completed([]ioengine.Completed{{Size: 1, Result: 1, Measured: true}})
			r.End(1)
		}
		if err := set.Close(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "x_iops.log"))
	if err != nil || string(text) != strings.Repeat("0, 1, 0, 1, 0\n", 4) {
		t.Errorf("got %q, %v", text, err)
	}
}

func batch() []ioengine.Completed {
	out := make([]ioengine.Completed, 32)
	for i := range out {
		out[i] = ioengine.Completed{Offset: int64(i), Size: 4096, Result: 4096, Submitted: 10, Returned: 15, Completed: 20, Measured: true}
	}
	return out
}

// A log that cannot be written says so once, with its name and the reason, and the others go on.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	var faults []error
	logs := fiojob.Logs{IOPS: fiojob.Log{On: true, Prefix: "full"}, Bandwidth: fiojob.Log{On: true, Prefix: "good"}}
	set, err := fiolog.New([]fiolog.Clone{{Name: "a", Number: 1, Logs: logs}}, fiolog.Options{
		Path: func(name string) string {
			if strings.HasPrefix(name, "full") {
				return "/dev/full"
			}
			return filepath.Join(dir, name)
		},
		Fault: func(err error) { faults = append(faults, err) },
	})
	if err != nil {
		testreq.Skip(t, err.Error())
	}
	r := set.Recorder(0)
	r.Begin(0)
	operations := batch()
	const batches = 4000
	for range batches {
		r.Completed(operations)
	}
	r.End(21)
	if err := set.Close(); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "/dev/full") {
		t.Errorf("the error is %v", err)
	}
	if len(faults) != 1 {
		t.Errorf("%d errors while the load went on: %v", len(faults), faults)
	}
	text, err := os.ReadFile(filepath.Join(dir, "good_bw.1.log"))
	if n := strings.Count(string(text), "\n"); err != nil || n != batches*len(operations) {
		t.Errorf("the other log has %d lines, want %d: %v", n, batches*len(operations), err)
	}
}

// Full blocks and the round of the writer meet in any order, and every operation is a line, in order.
func TestManyRecordersAtOnce(t *testing.T) {
	defer fiolog.SetFlushEvery(20 * time.Microsecond)()
	dir := t.TempDir()
	const count, batches = 4, 3000
	clones := make([]fiolog.Clone, count)
	for i := range clones {
		clones[i] = fiolog.Clone{Name: "j", Number: i + 1, Logs: fiojob.Logs{Latency: fiojob.Log{On: true}}}
	}
	set, err := fiolog.New(clones, fiolog.Options{Path: func(name string) string { return filepath.Join(dir, name) }})
	if err != nil {
		t.Fatal(err)
	}
	var loads sync.WaitGroup
	for i := range clones {
		r := set.Recorder(i)
		loads.Go(func() {
			r.Begin(0)
			operations := batch()
			for k := range int64(batches) {
				for o := range operations {
					operations[o].Completed = (k + 1) * 1e6
				}
				r.Completed(operations)
			}
			r.End(batches * 1e6)
		})
	}
	loads.Wait()
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range clones {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("j_lat.%d.log", i+1)))
		if err != nil {
			t.Fatal(err)
		}
		last, lines := int64(0), numbers(t, string(text))
		for _, line := range lines {
			if line[0] < last {
				t.Fatalf("clone %d: %d ms comes after %d ms", i, line[0], last)
			}
			last = line[0]
		}
		if want := batches * len(batch()); len(lines) != want {
			t.Errorf("clone %d has %d lines, want %d", i, len(lines), want)
		}
	}
}

func TestFolderThatIsNotThere(t *testing.T) {
	logs := fiojob.Logs{IOPS: fiojob.Log{On: true, Prefix: "/nonexistent/x"}}
	if _, err := fiolog.New([]fiolog.Clone{{Name: "a", Number: 1, Logs: logs}}, fiolog.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

// The thread of the load allocates nothing, but for the blocks that are made once.
func TestNoAllocation(t *testing.T) {
	set, err := fiolog.New([]fiolog.Clone{{Name: "a", Number: 1, Logs: all(), Directions: both}},
		fiolog.Options{Path: func(string) string { return os.DevNull }})
	if err != nil {
		t.Fatal(err)
	}
	r, operations := set.Recorder(0), batch()
	r.Begin(0)
	if n := testing.AllocsPerRun(20_000, func() { r.Completed(operations) }); n > 0.1 {
		t.Errorf("%v allocations a batch", n)
	}
	r.End(21)
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkRecorder(b *testing.B) {
	logs := fiojob.Logs{Latency: fiojob.Log{On: true}}
	for name, average := range map[string]int{"each": 0, "average": 1000} {
		b.Run(name, func(b *testing.B) {
			logs.AverageMillis = average
			set, err := fiolog.New([]fiolog.Clone{{Name: "a", Number: 1, Logs: logs, Directions: both}},
				fiolog.Options{Path: func(string) string { return os.DevNull }})
			if err != nil {
				b.Fatal(err)
			}
			r, operations := set.Recorder(0), batch()
			r.Begin(0)
			b.ReportAllocs()
			for b.Loop() {
				r.Completed(operations)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(operations)), "ns/operation")
			r.End(21)
			if err := set.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// The column of log_issue_time is the last one; it has the time of submission in clat and slat, and 0 elsewhere.
func TestIssueTime(t *testing.T) {
	logs := fiojob.Logs{IOPS: fiojob.Log{On: true}, Latency: fiojob.Log{On: true}, Issued: true, Offset: true}
	o := []ioengine.Completed{{
		Offset: 8192, Size: 4096, Result: 4096, Intended: 1000, Submitted: 2_000_500, Returned: 2_000_600, Completed: 3_000_000, Measured: true,
	}}
	got := write(t, t.TempDir(), logs, 500, 4e6, o)
	for log, want := range map[string][]int64{
		"clat": {2, 999_500, 0, 4096, 8192, 0, 2_000_000}, "slat": {2, 100, 0, 4096, 8192, 0, 2_000_000},
		"lat": {2, 2_999_000, 0, 4096, 8192, 0, 0}, "iops": {2, 1, 0, 4096, 8192, 0, 0},
	} {
		if len(got[log]) != 1 || !slices.Equal(got[log][0], want) {
			t.Errorf("%s log has %v, want %v", log, got[log], want)
		}
	}
	logs.AverageMillis, logs.Epoch = 10, true
	if got := write(t, t.TempDir(), logs, 500, 4e6, o)["clat"]; len(got) != 1 || got[0][len(got[0])-1] != 0 {
		t.Errorf("an average was issued: %v", got)
	}
}

// Lines are the same, whatever the values, as when each number is printed by itself.
func TestLinesOfAnyValue(t *testing.T) {
	dir := t.TempDir()
	logs := fiojob.Logs{Latency: fiojob.Log{On: true}, Offset: true, Priority: true, Epoch: true, Issued: true}
	rapid.Check(t, func(t *rapid.T) {
		var operations []ioengine.Completed
		var want [][]int64
		at := int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "operations") {
			at += rapid.Int64Range(0, 1<<50).Draw(t, "gap")
			service := rapid.Int64Range(0, at).Draw(t, "service")
			size, offset := rapid.Int64Range(1, math.MaxUint32).Draw(t, "size"), rapid.Int64Range(0, math.MaxInt64).Draw(t, "offset")
			d := rapid.IntRange(0, 2).Draw(t, "direction")
			operations = append(operations, ioengine.Completed{
				Offset: offset, Size: size, Result: size, Intended: at - service, Submitted: at - service, Completed: at,
				Direction: interval.Direction(d), Measured: true,
			})
			want = append(want, []int64{1_000_000_000 + at/1e6, service, int64(d), size, offset, 0, 1_000_000_000e6 + at - service})
		}
		got := write(t, dir, logs, 0, at, operations)["clat"]
		if !slices.EqualFunc(got, want, slices.Equal[[]int64]) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
	})
}
