package iperf3

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
)

// recorded are outputs of clients of iperf3 3.12 (Debian 12) and 3.21+ (commit c9b7422, built with gcc), of tests of two seconds at 400 Mbit/s.
// The server was in another network namespace. Names, times and cookies are replaced.
var recorded = map[string]struct {
	streams        int // of each direction
	sent, received bool
	reports        int // without omitted ones
}{
	"3.12-tcp-both":    {2, true, true, 2},
	"3.12-tcp-send":    {3, true, false, 2},
	"3.12-tcp-receive": {1, false, true, 2},
	"3.12-udp-receive": {2, false, true, 2},
	"3.21-tcp-both":    {2, true, true, 2},
	"3.21-tcp-send":    {3, true, false, 2},
	"3.21-tcp-receive": {1, false, true, 2},
	"3.21-udp-receive": {2, false, true, 2},
}

func textOf(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// iperf3 that loses its server prints the last interval again; the figures are of 3.12, whose server had timed out.
func TestRepeatedReport(t *testing.T) {
	const report = "interval_len 0.999925 bytes_transferred 12441770\n" +
		"[  5]   6.00-7.00   sec  11.9 MBytes  99542 Kbits/sec                  \n"
	reports, moved := readAll(&output{reverse: true}, report+"interval forces keep\n"+report+"iperf3: error - control socket has closed unexpectedly\n", 100)
	if len(reports) != 1 || moved[received] != 12441770 {
		t.Errorf("%d reports of %d bytes", len(reports), moved[received])
	}
	// A stream that is limited moves as much in the next second, in the same time.
	reports, _ = readAll(&output{reverse: true}, report+strings.Replace(report, "6.00-7.00", "7.00-8.00", 1), 100)
	if len(reports) != 2 {
		t.Errorf("%d reports of two seconds", len(reports))
	}
}

// readAll reads an output in pieces of a size, and returns its reports without the omitted ones, and what was moved in them.
func readAll(o *output, text string, piece int) (reports []report, moved [2]uint64) {
	sink := &lines{take: func(line string) {
		r, complete := o.line(line)
		if !complete || r.omitted {
			return
		}
		reports = append(reports, r)
		for _, s := range r.streams {
			if s.received {
				moved[received] += s.bytes
			} else {
				moved[sent] += s.bytes
			}
		}
	}}
	for len(text) > 0 {
		n := min(piece, len(text))
		_, _ = sink.Write([]byte(text[:n]))
		text = text[n:]
	}
	return reports, moved
}

// The reports of an output have all streams, and the same bytes as the results at its end.
func TestRecordedOutputs(t *testing.T) {
	for name, want := range recorded {
		t.Run(name, func(t *testing.T) {
			c := &config{streams: want.streams, sends: want.sent, receives: want.received}
			for _, piece := range []int{1, 7, 1 << 20} {
				o := &output{reverse: !want.sent}
				reports, moved := readAll(o, textOf(t, name), piece)
				if len(reports) < want.reports || len(o.faults) > 0 || o.local == nil || o.remote == nil {
					t.Fatalf("%d reports, faults %v, results %v and %v", len(reports), o.faults, o.local, o.remote)
				}
				for _, r := range reports {
					if len(r.streams) != want.streams*c.directions() {
						t.Errorf("a report of %d streams", len(r.streams))
					}
				}
				var sum [2]uint64
				for i, s := range o.local.Streams {
					sum[c.direction(i)] += s.Bytes.value
				}
				if !o.same(sum[sent], moved[sent]) || !o.same(sum[received], moved[received]) || (moved[sent] > 0) != want.sent || (moved[received] > 0) != want.received || o.streams != want.streams || o.block == 0 {
					t.Errorf("pieces of %d: moved %v, results %v, %d streams, blocks of %d", piece, moved, sum, o.streams, o.block)
				}
			}
		})
	}
}

// From 3.16 on, a few bytes may be in the results and in no report.
func TestBytesBesideReports(t *testing.T) {
	for _, c := range []struct {
		version          string
		results, reports uint64
		want             bool
	}{
		{"3.15", 1000, 1000, true}, {"3.15", 1001, 1000, false}, {"3.16", 1001, 1000, true}, {"3.21+", 1001, 1000, true}, {"4.0", 1001, 1000, true},
		{"3.18", 999, 1000, false}, {"3.18", 2 * lateBytes, 0, false}, {"3.18", 1_010_000_000, 1_000_000_000, true}, {"3.18", 1_010_000_001, 1_000_000_000, false},
		{"3.16", 5876744192, 5873467392, true}, // of a real load
	} {
		o := &output{}
		o.line("iperf " + c.version)
		if got := o.same(c.results, c.reports); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// A thread that receives after the end prints so, within the results too.
func TestLateWithinResults(t *testing.T) {
	o := &output{}
	for _, line := range []string{"send_results", "Late receive, state = 13-EXCHANGE_RESULTS", "{", "Late receive, state = 14-DISPLAY_RESULTS", `"streams": [{"bytes": 7}]`, "}"} {
		o.line(line)
	}
	if o.local == nil || len(o.local.Streams) != 1 || o.local.Streams[0].Bytes.value != 7 || len(o.faults) > 0 {
		t.Errorf("%+v, %v", o.local, o.faults)
	}
}

// An output that ends at any byte has no more than the whole one, and results only if both ends printed theirs.
func TestCutOutputs(t *testing.T) {
	for name, want := range recorded {
		text := textOf(t, name)
		_, whole := readAll(&output{reverse: !want.sent}, text, len(text))
		last := strings.LastIndex(text, "\n}") // of the results of the server
		for n := range len(text) {
			o := &output{reverse: !want.sent}
			_, moved := readAll(o, text[:n], n+1)
			if moved[sent] > whole[sent] || moved[received] > whole[received] {
				t.Fatalf("%s: %v moved in %d bytes of an output, of %v", name, moved, n, whole)
			}
			if n <= last && o.local != nil && o.remote != nil {
				t.Fatalf("%s: results of both ends in %d bytes of an output", name, n)
			}
			if len(o.faults) > 0 {
				t.Fatalf("%s: %v in %d bytes", name, o.faults, n)
			}
		}
	}
}

// Whatever a client prints, reading it is bounded: reports have no more streams than lines, and faults never end the process.
func FuzzOutput(f *testing.F) {
	for name, want := range recorded {
		text := textOf(f, name)
		f.Add(text, !want.sent)
		f.Add(text[len(text)/2:], want.sent)
	}
	f.Fuzz(func(t *testing.T, text string, reverse bool) {
		o := &output{reverse: reverse}
		reports, _ := readAll(o, text, 100)
		for _, r := range reports {
			if len(r.streams) == 0 || len(r.streams) > 2*streamsMax || r.length < 0 {
				t.Errorf("a report of %d streams in %v", len(r.streams), r.length)
			}
		}
	})
}

// Streams are compared with those of their own direction: a path that is faster one way has no unequal streams.
func TestSpreadOfStreams(t *testing.T) {
	for _, c := range []struct {
		config config
		bytes  []float64 // of each stream, pair by pair
		want   float64
	}{
		{config{streams: 2, sends: true}, []float64{100, 300}, 100},
		{config{streams: 2, sends: true, receives: true}, []float64{100, 100, 900, 900}, 0},
		{config{streams: 2, sends: true, receives: true}, []float64{100, 100, 900, 900, 300, 300, 900, 900}, 100},
		{config{streams: 2, sends: true, receives: true}, []float64{0, 0, 900, 300}, 100},
		{config{streams: 2, sends: true, receives: true}, []float64{0, 0, 0, 0}, math.NaN()},
	} {
		r := &record{config: &c.config, names: c.config.gauges(len(c.bytes) / c.config.streams / c.config.directions())}
		for range r.names {
			r.values = append(r.values, math.NaN())
		}
		f := &flow{bytes: c.bytes}
		for range c.bytes {
			f.seconds = append(f.seconds, 1)
		}
		r.setStreams(f)
		got := r.values[slices.IndexFunc(r.names, func(g interval.Gauge) bool { return g.Name == gaugeSpread })]
		if float64(got) != c.want && !(math.IsNaN(float64(got)) && math.IsNaN(c.want)) {
			t.Errorf("%v: spread %g, want %g", c.bytes, got, c.want)
		}
	}
	if slices.ContainsFunc((&config{streams: 1, sends: true, receives: true}).gauges(1), func(g interval.Gauge) bool { return g.Name == gaugeSpread }) {
		t.Error("one stream in each direction has a spread")
	}
}
