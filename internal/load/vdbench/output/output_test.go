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

// rows reads the complete lines of a flatfile. Those in testdata are of the real program, without its comments: raw.html of storage,
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

// versions are those of vdbench whose output was recorded.
var versions = []string{"5.04.05", "5.04.07"}

func TestRows(t *testing.T) {
	for _, version := range versions {
		all, err := rows(loadtest.Recorded(t, version+"/raw.html"))
		if err != nil {
			t.Fatal(err)
		}
		of := func(run string) (sum, first float64, average output.Row, n int) {
			for _, r := range all {
				switch {
				case r.Run != run || r.Asked != all[4].Asked && run == "rd1":
				case r.Average:
					average = r
				case r.Interval == 1:
					first = r.Rate
				default:
					sum, n = sum+r.Rate, n+1
				}
			}
			return sum, first, average, n
		}
		sum, first, average, n := of("rd1")
		if version == "5.04.05" {
			sum += first // which is in its average, and the average is by one interval more than stated
			n++
		}
		if !average.Average || average.From != 2 || average.To != 5 || n < 4 || math.Abs(average.Rate*float64(n)-sum) > 0.01*float64(n) || average.Asked != 500 {
			t.Errorf("%s: average %+v of %v operations in %d intervals", version, average, sum, n)
		}
		for i, r := range all {
			if !r.Average && (math.Abs(r.Mebibytes-r.Rate*r.BytesPerOp/(1<<20)) > r.Rate/(1<<20)+1e-3 || r.Rates != nil || r.At.Year() != 2026) {
				t.Errorf("%s: row %d: %+v", version, i, r)
			}
			if i > 0 && r.At.Before(all[i-1].At) {
				t.Errorf("%s: row %d was written at %v, before the one above", version, i, r.At)
			}
		}
		if last := all[len(all)-1]; !math.IsNaN(all[0].Asked) || last.From != 3 || last.To != 8 || last.ReadPercent < 60 || last.ReadPercent > 80 {
			t.Errorf("%s: first row %+v, last %+v", version, all[0], last)
		}
	}
}

// Every operation that a workload asked for is in the rate; opening and closing its files is not.
func TestRowsOfFiles(t *testing.T) {
	for _, version := range versions {
		all, err := rows(loadtest.Recorded(t, version+"/files.html"))
		if err != nil {
			t.Fatal(err)
		}
		reading, writing := 0, 0
		for i, r := range all {
			if r.Average || r.Interval == 1 && r.Run == "format_for_rd1" {
				continue
			}
			if got := r.Rates["read"] + r.Rates["write"] + r.Rates["getattr"]; got != r.Rate || len(r.Rates) < 11 {
				t.Errorf("%s: row %d: %v operations are %v", version, i, r.Rate, r.Rates)
			}
			if r.Rates["open"] == 0 || math.Abs(r.ReadMebibytes+r.WriteMebibytes-r.Mebibytes) > 1e-3 {
				t.Errorf("%s: row %d: %+v", version, i, r)
			}
			switch r.Run {
			case "rd1":
				reading++
			case "rd3":
				writing++
			}
		}
		if reading != 5 || writing != 4 {
			t.Errorf("%s: %d rows of the first run, %d of the last", version, reading, writing)
		}
	}
}

// A file that is still written gives the same rows, up to its last complete line.
func TestCutFlatfile(t *testing.T) {
	for _, name := range []string{"5.04.05/raw.html", "5.04.05/files.html", "5.04.07/raw.html", "5.04.07/files.html"} {
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
	for _, line := range []string{"1 2 rd1 1 100 5", "1 2 rd1 0 100 5 1", "1 2 rd1 -1 100 5 1", "1 2 rd1 avg_x 100 5 1", "1 2 rd1 avg_2- 100 5 1", "1 2 rd1 1 100 -5 1", "1 2 rd1 1 100 1e99 1", "1 2 rd1 1 100 n/a 1", "1 2 rd1 1 100 NaN 1", "1 2 rd1 x 100 5 1"} {
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
	for _, version := range versions {
		all, err := output.Histograms(loadtest.Recorded(t, version+"/raw-histogram.html"))
		if err != nil || len(all) != 2 {
			t.Fatalf("%s: %d runs: %v", version, len(all), err)
		}
		d := all[1]
		if d.Run != "rd1" || d.Title != "RD=rd1; I/O rate: 500; elapsed=5; For loops: threads=2 iorate=500" || len(d.All) != 27 {
			t.Fatalf("%s: %+v", version, d)
		}
		for i, b := range d.All {
			if b.Count != d.Reads[i].Count+d.Writes[i].Count {
				t.Errorf("%s: bucket %d: %+v", version, i, b)
			}
		}
		table, err := rows(loadtest.Recorded(t, version+"/raw.html"))
		if err != nil {
			t.Fatal(err)
		}
		operations := 0.0
		for _, r := range table {
			if r.Run == "rd1" && !r.Average && r.Asked == 500 && (r.Interval > 1 || version == "5.04.05") {
				operations += r.Rate
			}
		}
		if float64(d.All.Count()) != operations {
			t.Errorf("%s: %d response times of %v operations", version, d.All.Count(), operations)
		}
		if all[0].Run != "fill" || all[0].All != nil {
			t.Errorf("%s: a run of one interval: %+v", version, all[0])
		}
	}
}

// File systems have one histogram of all operations, with thousands separated by commas.
func TestHistogramsOfFiles(t *testing.T) {
	for version, most := range map[string]uint64{"5.04.05": 1, "5.04.07": 0} {
		all, err := output.Histograms(loadtest.Recorded(t, version+"/files-histogram.html"))
		if err != nil || len(all) != 2 {
			t.Fatalf("%s: %d runs: %v", version, len(all), err)
		}
		table, err := rows(loadtest.Recorded(t, version+"/files.html"))
		if err != nil {
			t.Fatal(err)
		}
		operations := 0.0
		for _, r := range table {
			if r.Run == "rd1" && !r.Average && r.Interval > 1-int(most) {
				operations += r.Rate
			}
		}
		if d := all[1]; float64(d.All.Count()) != operations || d.Reads != nil || operations < 100_000 {
			t.Errorf("%s: %d response times of %v operations", version, d.All.Count(), operations)
		}
	}
}

func TestBuckets(t *testing.T) {
	all := output.Buckets{{Low: 20_000, High: 40_000, Count: 100}, {Low: 40_000, High: 60_000, Count: 69}, {Low: 2_000_000_000, Count: 1}}
	h, off := all.Histogram(2_500_000_000)
	if median := h.Quantile(0.5); h.Count() != 170 || math.Abs(median-30_000) > 600 || off != 0.5 {
		t.Errorf("%d writes, median %v, off by %v", h.Count(), median, off)
	}
	if longest := h.Quantile(1); math.Abs(longest-2.5e9) > 5e7 {
		t.Errorf("longest %v", longest)
	}
	if _, off := (output.Buckets{{High: 20_000, Count: 1}}).Histogram(0); !math.IsInf(off, 1) {
		t.Errorf("the bucket from 0 is off by %v", off)
	}
	if h, _ := all.Histogram(0); h.Count() != 170 || h.Quantile(1) < 1.9e9 {
		t.Errorf("without the longest: %d, %v", h.Count(), h.Quantile(1))
	}
}

// A table that was cut is left out, and those before it are the same.
func TestCutHistograms(t *testing.T) {
	text := loadtest.Recorded(t, "5.04.07/raw-histogram.html")
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
	text := loadtest.Recorded(t, "5.04.07/raw-histogram.html")
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
	const full = "10:14:31.525 localhost-0: 10:14:31.519 op: write  lun: /data/sdb                 lba:     25165824 0x01800000 xfer:  1048576 errno: ENOSPC: 'No space left on device'\n"
	for _, failed := range []string{full, "Error:         ENOSPC: 'No space left on device'\n"} {
		r := output.Judge(strings.Repeat(failed, 8) + "10:14:32.595 Vdbench terminating due to Data Validation or I/O errors. See errorlog.html.\n" + good)
		if r.Good() || len(r.Errors) != 2 || !strings.Contains(r.Errors[0], "No space left on device") || !strings.Contains(r.Errors[1], "terminating") {
			t.Errorf("%+v", r)
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
	for _, version := range versions {
		f.Add(loadtest.Recorded(f, version+"/raw.html"))
		f.Add(loadtest.Recorded(f, version+"/files.html"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, _ := rows(text)
		for _, r := range all {
			if !(r.Rate >= 0) && !r.Average || r.Average != (r.Interval == 0) {
				t.Errorf("%+v", r)
			}
		}
	})
}

func FuzzHistograms(f *testing.F) {
	for _, version := range versions {
		f.Add(loadtest.Recorded(f, version+"/raw-histogram.html"))
		f.Add(loadtest.Recorded(f, version+"/files-histogram.html"))
	}
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
