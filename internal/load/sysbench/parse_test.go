package sysbench_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/sysbench"
)

// The outputs begin with their version. That of 1.1.0 was built from its sources.
var outputs = map[string]struct {
	options            map[string]string
	events, unfinished uint64
	latencies          bool
	reports            int
}{
	"1.0.20-cpu.txt":     {map[string]string{"test": "cpu"}, 188789, 0, true, 1},
	"1.0.20-memory.txt":  {map[string]string{"test": "memory"}, 5565909, 0, true, 2},
	"1.0.20-fileio.txt":  {map[string]string{"test": "fileio", "mode": "rndrw", "data": "64MiB", "files": "4"}, 17367, 0, false, 3},
	"1.0.20-stopped.txt": {map[string]string{"test": "cpu"}, 4166, 1, false, 2},

	"1.0.20-oltp.txt":         {tables("postgresql"), 1432, 0, true, 2},
	"1.0.20-oltp-rate.txt":    {tables("postgresql", "rate", "100"), 206, 0, true, 2},
	"1.0.20-oltp-mariadb.txt": {tables("mariadb"), 3104, 0, true, 2},
	"1.1.0-oltp-mariadb.txt":  {tables("mariadb"), 2402, 0, true, 2},
	"1.1.0-oltp-rate.txt":     {tables("postgresql", "test", "oltp_read_only", "rate", "300"), 630, 0, true, 2},
	"1.0.20-oltp-stopped.txt": {tables("postgresql"), 3135, 2, false, 2},
}

// A summary that was cut anywhere is refused, or has the numbers of the whole one.
func TestSummary(t *testing.T) {
	for name, want := range outputs {
		text := loadtest.Recorded(t, name)
		s, err := sysbench.ParseSummary(text)
		if err != nil || s.Events != want.events || s.Unfinished != want.unfinished || (s.Latencies != nil) != want.latencies {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		for end := range text {
			if cut, err := sysbench.ParseSummary(text[:end]); err == nil && cut.Events != want.events {
				t.Errorf("%s cut after %d bytes: %+v", name, end, cut)
			}
		}
	}
}

// What sysbench sent to a database is complete, or refused.
func TestStatistics(t *testing.T) {
	text := loadtest.Recorded(t, "1.0.20-oltp.txt")
	s, err := sysbench.ParseSummary(text)
	if err != nil || s.Transactions != s.Events || s.Read != 20174 || s.Written != 5723 || s.Other != 2904 || s.Ignored != 9 {
		t.Errorf("%+v, %v", s, err)
	}
	for from, to := range map[string]string{"        write: ": "        wrote: ", "    queries:   ": "    queries:  1"} {
		if s, err := sysbench.ParseSummary(strings.Replace(text, from, to, 1)); err == nil {
			t.Errorf("with %q: %+v", to, s)
		}
	}
	w := workload(t, tables("postgresql"))
	const line = "[ 1s ] thds: 2 tps: 729.28 qps: 14691.56 (r/w/o: 10293.88/2915.13/1482.54) lat (ms,95%): 4.03 err/s: 4.00 reconn/s: 0.25"
	p, is, _ := sysbench.ParseReport(w, line)
	if !is || p.Rate != 729.28 || p.Failed != 4 || !slices.Equal(p.Gauges, []float64{4.03, 10293.88, 2915.13, 1482.54, 4, 0.25}) {
		t.Errorf("%+v, %t", p, is)
	}
	for end := range line[:len(line)-1] { // the last number may lose a digit
		if p, is, _ := sysbench.ParseReport(w, line[:end]); is {
			t.Errorf("%q: %+v", line[:end], p)
		}
	}
}

// The percentile that sysbench prints is that of the histogram, within a bucket and the digits.
func TestHistogram(t *testing.T) {
	s, err := sysbench.ParseSummary(loadtest.Recorded(t, "1.0.20-memory.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if h := s.Latencies; h.Count() != 5565909 || h.Min() != 87 || h.Max() != 124_770_000 || h.Quantile(0.95) > 88 {
		t.Errorf("%d latencies from %d to %d ns, p95 %v", h.Count(), h.Min(), h.Max(), h.Quantile(0.95))
	}
	text := loadtest.Recorded(t, "1.0.20-memory.txt")
	for change, want := range map[string]string{"5565253": "has 5565", "       0.001 |                                         6\n": "has 5565903"} {
		if s, err := sysbench.ParseSummary(strings.Replace(text, change, "", 1)); err == nil {
			t.Errorf("without %q: %+v, want %q", change, s, want)
		}
	}
}

func TestReports(t *testing.T) {
	for name, want := range outputs {
		w, found := workload(t, want.options), 0
		for line := range strings.Lines(loadtest.Recorded(t, name)) {
			if _, is, err := sysbench.ParseReport(w, strings.TrimSuffix(line, "\n")); err != nil {
				t.Fatal(err)
			} else if is {
				found++
			}
		}
		if found != want.reports {
			t.Errorf("%s: %d reports, want %d", name, found, want.reports)
		}
	}
	w := workload(t, outputs["1.0.20-fileio.txt"].options)
	const line = "[ 1s ] reads: 43.00 MiB/s writes: 28.00 MiB/s fsyncs: 181.50/s latency (ms,95%): 0.247"
	p, is, _ := sysbench.ParseReport(w, line)
	if !is || p.Bytes != 71<<20 || p.Rate != 71*64+181.5 || len(p.Gauges) != 4 || p.Gauges[0] != 0.247 || p.Gauges[3] != 181.5 {
		t.Errorf("%+v, %t", p, is)
	}
	for end := range line[:len(line)-2] { // the last number may lose digits
		if p, is, _ := sysbench.ParseReport(w, line[:end]); is {
			t.Errorf("%q: %+v", line[:end], p)
		}
	}
	for _, bad := range []string{"[ 1s ] reads: nan MiB/s writes: 28.00 MiB/s fsyncs: 181.50/s latency (ms,95%): 0.247",
		"[ 1s ] reads: 99999999999999999999.00 MiB/s writes: 28.00 MiB/s fsyncs: 181.50/s latency (ms,95%): 0.247",
		"[ 1s ] reads: -1.00 MiB/s writes: 28.00 MiB/s fsyncs: 181.50/s latency (ms,95%): 0.247", "\x1b" + line} {
		if p, is, _ := sysbench.ParseReport(w, bad); is {
			t.Errorf("%q: %+v", bad, p)
		}
	}
}

func FuzzSummary(f *testing.F) {
	for name := range outputs {
		f.Add(loadtest.Recorded(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := sysbench.ParseSummary(text); err == nil && s.Latencies != nil && s.Latencies.Count() != s.Events {
			t.Errorf("%d latencies of %d events", s.Latencies.Count(), s.Events)
		}
	})
}

func FuzzReport(f *testing.F) {
	var all []load.Workload
	for name, o := range outputs {
		all = append(all, workload(f, o.options))
		for line := range strings.Lines(loadtest.Recorded(f, name)) {
			f.Add(strings.TrimSuffix(line, "\n"))
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, w := range all {
			if p, is, _ := sysbench.ParseReport(w, line); is && !(p.Rate >= 0 && p.Bytes >= 0 && p.Rate < 1e16) {
				t.Errorf("%q: %+v", line, p)
			}
		}
	})
}
