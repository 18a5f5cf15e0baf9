package unit

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{FormatBytes(0), "0 B"}, {FormatBytes(512), "512 B"}, {FormatBytes(1536), "1.5 KiB"}, {FormatBytes(2 * GiB), "2 GiB"},
		{FormatBytes(1023 * KiB), "1023 KiB"}, {FormatBytes(1024*KiB - 1), "1 MiB"}, {FormatBytes(-MiB), "−1 MiB"},
		{FormatBytes(math.MaxInt64), "8 EiB"}, {FormatBytes(math.MinInt64), "−8 EiB"},
		{FormatRate(212e6), "212 MB/s"}, {FormatRate(999.7), "1 kB/s"}, {FormatRate(math.NaN()), "–"},
		{FormatCount(75712), "75.7k"}, {FormatCount(950), "950"}, {FormatCount(0.25), "0.25"},
		{FormatLatency(87_000), "87 µs"}, {FormatLatency(1.53e6), "1.53 ms"}, {FormatLatency(2.1e9), "2.1 s"}, {FormatLatency(640), "640 ns"},
		{FormatRate(0), "0 B/s"}, {FormatCount(0), "0"}, {FormatLatency(0), "0 ns"}, {FormatCount(10), "10"}, {FormatCount(100), "100"},
		{FormatPercent(0), "0 %"}, {FormatPercent(0.07), "7 %"}, {FormatPercent(0.29), "29 %"}, {FormatPercent(0.123), "12.3 %"},
		{FormatPercent(0.9269), "92.7 %"}, {FormatPercent(-0.5), "−50 %"}, {FormatPercent(0.00015), "0.015 %"}, {FormatPercent(1), "100 %"},
		{FormatLatency(999_600), "1 ms"}, {FormatLatency(math.Inf(1)), "–"},
		{FormatDuration(350 * time.Millisecond), "350 ms"}, {FormatDuration(45 * time.Second), "45 s"},
		{FormatDuration(90 * time.Second), "1 m 30 s"}, {FormatDuration(2*time.Hour + 5*time.Minute), "2 h 5 m"},
		{FormatDuration(time.Hour), "1 h"}, {FormatDuration(-time.Minute), "−1 m"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"4096": 4096, "64k": 64 * KiB, "1.5 GiB": 3 * GiB / 2, "2G": 2 * GiB, "1TB": TiB, "512B": 512, " 8 mib ": 8 * MiB, "0": 0,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "k", "-1", "1x", "1kk", "9e30", "NaN", "1e400", "inf", "4 4k"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		} else if !strings.Contains(err.Error(), strconv.Quote(text)) {
			t.Errorf("the error %q does not name %q", err, text)
		}
	}
}

// What is printed reads back as nearly the same number: three significant digits.
func TestFormatBytesReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "n")
		back, err := ParseBytes(FormatBytes(n))
		if err != nil {
			t.Fatal(err)
		}
		if diff := math.Abs(float64(back - n)); diff > 0.006*float64(n) {
			t.Fatalf("%d prints as %s, which is %d", n, FormatBytes(n), back)
		}
	})
}

func FuzzParseBytes(f *testing.F) {
	for _, seed := range []string{"4k", "1.5g", "0x10", "１２", "-0", "1e3", "1_000"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := ParseBytes(text); err == nil && n < 0 {
			t.Errorf("ParseBytes(%q) = %d", text, n)
		}
	})
}

func TestFormatSmallestDuration(t *testing.T) {
	if got := FormatDuration(math.MinInt64); !strings.HasPrefix(got, "−2562047 h") {
		t.Errorf("%q", got)
	}
}
