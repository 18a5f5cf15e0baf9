package output_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/vdbench/output"
)

// rows reads the complete lines of a flatfile. Those in testdata have the form of vdbench's, with numbers that are made up: raw.html of storage,
// files.html of file systems, whose columns have another order and case.
func rows(text string) (all []output.Row, err error) {
	var table output.Table
	for line := range strings.Lines(text) {
		body, whole := strings.CutSuffix(line, "\n")
		if !whole {
			break
		}
		r, is, err := table.Line(body)
		if err != nil {
			return all, err
		}
		if is {
			all = append(all, r)
		}
	}
	return all, nil
}

func TestRows(t *testing.T) {
	all, err := rows(loadtest.Recorded(t, "raw.html"))
	if err != nil || len(all) != 8 {
		t.Fatalf("%d rows: %v", len(all), err)
	}
	operations := 0.0
	for _, r := range all[3:7] {
		operations += r.Rate
	}
	if first := all[0]; first.Run != "fill" || first.Interval != 1 || first.Rate != 320 || !math.IsNaN(first.Asked) || first.ReadPercent != 0 {
		t.Errorf("first row: %+v", first)
	}
	last := all[7]
	if !last.Average || last.From != 2 || last.To != 5 || last.Rate*4 != operations || last.Asked != 100 || last.Millis != 0.026 || last.CPU != 12.5 ||
		last.System != 5 || last.QueueDepth != 0.0026 || last.BytesPerOp != 8192 || last.ReadMillis != 0.0166 || last.WriteMillis != 0.0452 ||
		math.Abs(last.Mebibytes-last.Rate*8192/(1<<20)) > 1e-4 {
		t.Errorf("average: %+v of %v operations", last, operations)
	}
	all, err = rows(loadtest.Recorded(t, "files.html"))
	if err != nil || len(all) != 4 {
		t.Fatalf("%d rows: %v", len(all), err)
	}
	if r := all[1]; r.Run != "rd1" || r.Interval != 2 || r.Rate != 7362 || r.Mebibytes != 28.75 || r.CPU != 4.2386 || !math.IsNaN(r.ReadPercent) || !math.IsNaN(r.QueueDepth) {
		t.Errorf("row of files: %+v", r)
	}
}

// A file that is still written gives the same rows, up to its last complete line.
func TestCutFlatfile(t *testing.T) {
	for _, name := range []string{"raw.html", "files.html"} {
		text := loadtest.Recorded(t, name)
		all, err := rows(text)
		if err != nil {
			t.Fatal(err)
		}
		for n := range text {
			some, err := rows(text[:n])
			if err != nil || len(some) > len(all) || fmt.Sprint(some) != fmt.Sprint(all[:len(some)]) {
				t.Fatalf("%s: %d bytes: %v, %v", name, n, some, err)
			}
		}
	}
}

func TestBadLines(t *testing.T) {
	const head = "tod timestamp Run Interval reqrate rate resp"
	for _, line := range []string{"1 2 rd1 1 100 5", "1 2 rd1 0 100 5 1", "1 2 rd1 -1 100 5 1", "1 2 rd1 avg_x 100 5 1", "1 2 rd1 avg_2- 100 5 1", "1 2 rd1 1 100 -5 1", "1 2 rd1 1 100 1e99 1", "1 2 rd1 1 100 n/a 1", "1 2 rd1 x 100 5 1"} {
		if _, err := rows(head + "\n" + line + "\n"); err == nil {
			t.Errorf("%q is read", line)
		}
	}
	for _, text := range []string{"1 2 rd1 1 100 5 1\n", "tod Run Interval\n", head + strings.Repeat(" x", 500) + "\n"} {
		if _, err := rows(text); err == nil {
			t.Errorf("%.80q is read", text)
		}
	}
}

func TestHistograms(t *testing.T) {
	all, err := output.Histograms(loadtest.Recorded(t, "histogram.html"))
	if err != nil || len(all) != 2 {
		t.Fatalf("%d runs: %v", len(all), err)
	}
	if all[0].Run != "fill" || all[0].All != nil {
		t.Errorf("a run without statistics: %+v", all[0])
	}
	d := all[1]
	if d.Run != "rd1" || d.Title != "RD=rd1; I/O rate: 100; elapsed=5; For loops: None" || len(d.All) != 27 {
		t.Fatalf("%+v", d)
	}
	if d.Reads.Count() != 220 || d.Writes.Count() != 200 || d.All.Count() != 420 {
		t.Errorf("%d reads, %d writes, %d in all", d.Reads.Count(), d.Writes.Count(), d.All.Count())
	}
	for i, b := range d.All {
		if b.Count != d.Reads[i].Count+d.Writes[i].Count {
			t.Errorf("bucket %d: %+v", i, b)
		}
	}
	if b := d.Writes[1]; b.Low != 20_000 || b.High != 40_000 || b.Count != 100 {
		t.Errorf("second bucket: %+v", b)
	}
	h, off := d.Writes[1:].Histogram(2_500_000_000)
	if median := h.Quantile(0.5); h.Count() != 170 || math.Abs(median-30_000) > 600 || off != 0.5 {
		t.Errorf("%d writes, median %v, off by %v", h.Count(), median, off)
	}
	if longest := h.Quantile(1); math.Abs(longest-2.5e9) > 5e7 {
		t.Errorf("longest %v", longest)
	}
	if _, off := d.Reads.Histogram(0); !math.IsInf(off, 1) {
		t.Errorf("the bucket from 0 is off by %v", off)
	}
	if h, _ := d.Writes.Histogram(0); h.Count() != 200 || h.Quantile(1) < 1.9e9 {
		t.Errorf("without the longest: %d, %v", h.Count(), h.Quantile(1))
	}
}

// A table that was cut is left out, and those before it are the same.
func TestCutHistograms(t *testing.T) {
	text := loadtest.Recorded(t, "histogram.html")
	all, err := output.Histograms(text)
	if err != nil {
		t.Fatal(err)
	}
	same := func(some, whole output.Buckets) bool { return some == nil || slices.Equal(some, whole) }
	tables := 0
	for n := range text {
		some, err := output.Histograms(text[:n])
		if err != nil || len(some) > len(all) {
			t.Fatalf("%d bytes: %+v, %v", n, some, err)
		}
		for i, d := range some {
			if d.Title != all[i].Title || !same(d.All, all[i].All) || !same(d.Reads, all[i].Reads) || !same(d.Writes, all[i].Writes) {
				t.Fatalf("%d bytes: %+v", n, d)
			}
			if d.Writes != nil {
				tables++
			}
		}
	}
	if tables == 0 {
		t.Error("no cut text has the last table")
	}
}

func TestBadHistograms(t *testing.T) {
	text := loadtest.Recorded(t, "histogram.html")
	for before, after := range map[string]string{
		"    0.040 < ":           "    0.050 < ",
		"0.020 <       0.0":      "0.020 <       9.0",
		"            0   0.0000": " 999999999999999999   0.0000",
	} {
		changed := strings.ReplaceAll(text, before, after)
		if all, err := output.Histograms(changed); changed == text || err == nil {
			t.Errorf("%q as %q: %d runs, changed: %t", before, after, len(all), changed != text)
		}
	}
}

func TestJudge(t *testing.T) {
	const good = "10:14:30.002 Starting RD=rd1; I/O rate: 100; elapsed=5; For loops: None\n10:14:35.871 Vdbench execution completed successfully. Output directory: /tmp/o \n"
	if r := output.Judge(good); !r.Good() {
		t.Errorf("%+v", r)
	}
	for n := range len(good) - 1 {
		if output.Judge(good[:n]).Completed {
			t.Fatalf("%q has completed", good[:n])
		}
	}
	for _, line := range []string{"java.lang.RuntimeException: too bad", "10:14:31.1 Data Validation error for sd=sd1", "10:14:31.1 Vdbench terminating due to Data Validation errors", "marked in error: 12"} {
		if r := output.Judge(line + "\n" + good); r.Good() || !slices.Equal(r.Errors, []string{line}) {
			t.Errorf("%q: %+v", line, r)
		}
	}
	if r := output.Judge("marked in error: 0\n" + good); !r.Good() {
		t.Errorf("no errors: %+v", r)
	}
	if r := output.Judge(strings.Repeat("java.lang."+strings.Repeat("x", 1000)+"\n", 100)); len(r.Errors) != 4 || len(r.Errors[0]) > 300 {
		t.Errorf("%d errors are quoted", len(r.Errors))
	}
}

func FuzzFlatfile(f *testing.F) {
	f.Add(loadtest.Recorded(f, "raw.html"))
	f.Add(loadtest.Recorded(f, "files.html"))
	f.Fuzz(func(t *testing.T, text string) {
		all, _ := rows(text)
		for _, r := range all {
			if !(r.Rate >= 0) || r.Average != (r.Interval == 0) {
				t.Errorf("%+v", r)
			}
		}
	})
}

func FuzzHistograms(f *testing.F) {
	f.Add(loadtest.Recorded(f, "histogram.html"))
	f.Fuzz(func(t *testing.T, text string) {
		all, _ := output.Histograms(text)
		for _, d := range all {
			for _, b := range []output.Buckets{d.All, d.Reads, d.Writes} {
				if h, _ := b.Histogram(0); h.Count() != b.Count() {
					t.Errorf("%d response times of %d", h.Count(), b.Count())
				}
			}
		}
	})
}
