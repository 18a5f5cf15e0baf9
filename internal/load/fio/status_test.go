package fio_test

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/fio"
)

// cumulative is the state of one direction from which a document is printed.
type cumulative struct {
	operations, bytes, errors uint64
	bins                      map[uint64]uint64
}

func (c *cumulative) text() string {
	var n, low, high uint64
	var sum float64
	var bins []string
	for _, value := range slices.Sorted(maps.Keys(c.bins)) {
		count := c.bins[value]
		bins = append(bins, fmt.Sprintf("%q : %d", fmt.Sprint(value), count))
		n, sum = n+count, sum+float64(value*count)
		if low == 0 {
			low = value
		}
		high = value
	}
	mean := 0.0
	if n > 0 {
		mean = sum / float64(n)
	}
	return fmt.Sprintf(`{ "io_bytes" : %d, "total_ios" : %d, "runtime" : 5, "clat_ns" : `+
		`{ "min" : %d, "max" : %d, "mean" : %f, "N" : %d, "bins" : { %s } } }`,
		c.bytes, c.operations, low, high, mean, n, strings.Join(bins, ", "))
}

func document(read, write *cumulative) string {
	errors := read.errors + write.errors
	number := 0
	if errors > 0 {
		number = 5
	}
	return fmt.Sprintf("{\n\"timestamp_ms\" : 1000,\n\"jobs\" : [ { \"jobname\" : \"a\", \"error\" : %d, \"total_err\" : %d, "+
		"\"first_error\" : %d,\n\"read\" : %s,\n\"write\" : %s } ]\n}\n", number, errors, number, read.text(), write.text())
}

// TestDifferencesAddUp grows cumulative counts at random and checks that the intervals add up to the last document.
func TestDifferencesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out strings.Builder
		dirs := []*cumulative{{bins: map[uint64]uint64{}}, {bins: map[uint64]uint64{}}}
		steps := rapid.IntRange(1, 8).Draw(t, "documents")
		for range steps {
			for _, c := range dirs {
				for range rapid.IntRange(0, 4).Draw(t, "bins") {
					value := rapid.Uint64Range(1, 1<<36).Draw(t, "value")
					count := rapid.Uint64Range(1, 1000).Draw(t, "count")
					c.bins[value] += count
					c.operations += count
					c.bytes += 4096 * count
				}
				failed := rapid.Uint64Range(0, 3).Draw(t, "failed")
				c.operations += failed
				c.errors += failed
			}
			if rapid.Bool().Draw(t, "noise") {
				out.WriteString("fio: something { else\n\n")
			}
			out.WriteString(document(dirs[0], dirs[1]))
		}
		got, _, err := fio.Differences(out.String(), "/dev/sdb", false)
		if err != nil || len(got) != steps {
			t.Fatalf("%d documents of %d, error %v", len(got), steps, err)
		}
		sum := totals(got)
		for d, c := range dirs {
			var recorded uint64
			for _, n := range c.bins {
				recorded += n
			}
			tr := sum.Directions[d]
			if tr.Operations != recorded || tr.Bytes != c.bytes || tr.Errors["EIO"] != c.errors {
				t.Fatalf("direction %d: %d operations, %d bytes, errors %v; want %d, %d, %d",
					d, tr.Operations, tr.Bytes, tr.Errors, recorded, c.bytes, c.errors)
			}
			if values := slices.Sorted(maps.Keys(c.bins)); recorded > 0 &&
				(tr.Service.Min() != values[0] || tr.Service.Max() != values[len(values)-1]) {
				t.Fatalf("direction %d: latencies %d to %d of %v", d, tr.Service.Min(), tr.Service.Max(), values)
			}
		}
	})
}

func TestCountersThatStartAgain(t *testing.T) {
	none := &cumulative{}
	before := &cumulative{operations: 100, bytes: 100 << 12, bins: map[uint64]uint64{1000: 100}}
	after := &cumulative{operations: 10, bytes: 10 << 12, bins: map[uint64]uint64{1000: 4, 3000: 6}}
	got, _, err := fio.Differences(document(before, none)+document(after, none), "/dev/sdb", false)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d documents, error %v", len(got), err)
	}
	second := got[1].Directions[interval.Read]
	if second.Operations != 10 || second.Bytes != 10<<12 || second.Service.Count() != 10 {
		t.Errorf("after the start: %+v", second)
	}
}

// During ramp_time fio prints operations without latencies, and starts again at its end: with more of them in its next document, or fewer.
func TestRampIsNotCounted(t *testing.T) {
	none := &cumulative{}
	ramp := &cumulative{operations: 100, bytes: 100 << 12}
	for _, n := range []uint64{10, 250} {
		after := &cumulative{operations: n, bytes: n << 12, bins: map[uint64]uint64{1000: n}}
		got, _, err := fio.Differences(document(ramp, none)+document(after, none), "/dev/sdb", false)
		if err != nil || len(got) != 2 {
			t.Fatalf("%d documents, error %v", len(got), err)
		}
		if sum := totals(got).Directions[interval.Read]; sum.Operations != n || sum.Bytes != n<<12 {
			t.Errorf("%d operations, %d bytes after a ramp; want %d", sum.Operations, sum.Bytes, n)
		}
	}
}

func TestLatencySwitchedOff(t *testing.T) {
	on := &cumulative{operations: 100, bytes: 100 << 12}
	got, _, err := fio.Differences(document(on, &cumulative{}), "/dev/sdb", true)
	if err != nil || len(got) != 1 {
		t.Fatalf("%d documents, error %v", len(got), err)
	}
	if read := got[0].Directions[interval.Read]; read.Operations != 100 || read.Service != nil {
		t.Errorf("%+v", read)
	}
}

// TestBucketsOfRealFio checks the precision that the package comment states: fio prints the middle of buckets of which
// every power of two has 64.
func TestBucketsOfRealFio(t *testing.T) {
	cmd := exec.Command(needFio(t), "--output-format=json+", "-")
	cmd.Stdin = strings.NewReader("[a]\nioengine=null\nsize=512m\nbs=4k\nthread=1\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := fio.Differences(string(out), "/dev/sdb", false)
	if err != nil || len(got) != 1 {
		t.Fatalf("%d documents, error %v", len(got), err)
	}
	read := got[0].Directions[interval.Read]
	if read.Operations != 512<<20/4096 || read.Service.Count() != read.Operations {
		t.Errorf("%d operations, %d latencies", read.Operations, read.Service.Count())
	}
	keys := fio.BucketKeys(string(out))
	if len(keys) < 3 {
		t.Fatalf("buckets %v", keys)
	}
	for _, k := range keys {
		width := uint64(1)
		for low := k; low >= 128; low >>= 1 {
			width <<= 1
		}
		if width > 1 && k%width != width/2 {
			t.Errorf("bucket %d is not the middle of a bucket of width %d", k, width)
		}
	}
}

// FuzzDifferences checks that no output of a program named fio makes us crash or count operations that it did not report.
func FuzzDifferences(f *testing.F) {
	f.Add("")
	f.Add("{\n}\n")
	f.Add("{\n\"jobs\" : [ {} , {} ]\n}\nnoise\n{\n\"jobs\" : 7\n}\n{\n")
	f.Add(document(&cumulative{operations: 3, bytes: 4096, bins: map[uint64]uint64{5: 3}}, &cumulative{}))
	f.Fuzz(func(t *testing.T, output string) {
		got, _, _ := fio.Differences(output, "/dev/sdb", false)
		for i := range got {
			for d := range got[i].Directions {
				if tr := &got[i].Directions[d]; tr.Service != nil && tr.Service.Count() != tr.Operations {
					t.Fatalf("%d operations with %d latencies", tr.Operations, tr.Service.Count())
				}
			}
		}
	})
}
