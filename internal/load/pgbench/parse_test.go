package pgbench_test

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/pgbench"
)

// Outputs of versions 10 and 17 are those of their manuals; the others are of PostgreSQL 15.
var summaries = map[string][3]uint64{
	"10-manual.txt": {10000, 0, 0}, "17-manual.txt": {10000, 0, 0},
	"15-closed.txt": {6, 0, 0}, "15-rated.txt": {53, 0, 0}, "15-failed.txt": {412, 0, 1909},
	"15-scripts.txt": {1146, 0, 0}, "15-skipped.txt": {81, 77, 0},
}

// A summary that was cut anywhere is refused, or has the numbers of the whole one.
func TestSummary(t *testing.T) {
	for name, want := range summaries {
		text := loadtest.Recorded(t, name)
		if got, err := pgbench.ParseSummary(text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
		for end := range text {
			if got, err := pgbench.ParseSummary(text[:end]); err == nil && got != want {
				t.Errorf("%s cut after %d bytes: %v, want %v", name, end, got, want)
			}
		}
	}
}

func TestTotalsThatDifferAreAnError(t *testing.T) {
	text := loadtest.Recorded(t, "15-failed.txt")
	if err := pgbench.Compare(412, 0, 1909, text); err != nil {
		t.Error(err)
	}
	for _, n := range [][3]uint64{{411, 0, 1909}, {412, 1, 1909}, {412, 0, 0}} {
		if err := pgbench.Compare(n[0], n[1], n[2], text); err == nil || diag.ExitCode(err) != diag.ExitUndecided {
			t.Errorf("%v: %v", n, err)
		}
	}
}

func TestLogLines(t *testing.T) {
	for line, want := range map[string]pgbench.Parsed{
		"0 1 2290 0 1795457289 763028 104":         {0, 1795457289763028000, 2290000, 104000, "ok"},
		"3 17 skipped 1 1795457289 5 0":            {1, 1795457289000005000, 0, 0, "skipped"},
		"3 17 serialization 2 1795457289 999999 0": {2, 1795457289999999000, 0, 0, "serialization"},
		"3 17 7 0 1795457289 1 9 2":                {0, 1795457289000001000, 7000, 7000, "ok"}, // with retries; the lag is part of the latency
	} {
		if got, err := pgbench.ParseLine(line, true); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{"", "0 1 2290 0 1795457289", "0 1 x 0 1 1", "0 1 -5 0 1 1", "0 1 5 0 99999999999999999 1", "0 1 5 0 1 1000000", "0 1 5 0 1 1 1 1 1",
		"0 1 9223372036854775807 0 1 1"} {
		if got, err := pgbench.ParseLine(line, false); err == nil {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

// Every line of real logs is read; a line that was cut is refused, or was cut within its last number.
func TestLogs(t *testing.T) {
	for name, rated := range map[string]bool{"15-closed.log": false, "15-rated.log": true, "15-failed.log": false, "15-skipped.log": true} {
		outcomes := map[string]int{}
		for line := range strings.Lines(loadtest.Recorded(t, name)) {
			line = strings.TrimSuffix(line, "\n")
			whole, err := pgbench.ParseLine(line, rated)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			outcomes[whole.Outcome]++
			for end := range line {
				if _, err := pgbench.ParseLine(line[:end], rated); err == nil && end <= strings.LastIndexByte(line, ' ') {
					t.Errorf("%s: %q is read", name, line[:end])
				}
			}
		}
		if want := map[string]string{"15-failed.log": "serialization", "15-skipped.log": "skipped"}[name]; want != "" && outcomes[want] == 0 || outcomes["ok"] == 0 {
			t.Errorf("%s: %v", name, outcomes)
		}
	}
}

func FuzzLogLine(f *testing.F) {
	for _, line := range []string{"0 1 2290 0 1795457289 763028 104", "3 17 skipped 1 1795457289 5 0", "0 1 deadlock 0 1 1 0 3"} {
		f.Add(line, true)
		f.Add(line, false)
	}
	f.Fuzz(func(t *testing.T, line string, rated bool) {
		p, err := pgbench.ParseLine(line, rated)
		if err == nil && (p.End < 0 || p.Latency < 0 || p.Lag < 0 || p.Lag > p.Latency || p.Script < 0) {
			t.Errorf("%q: %+v", line, p)
		}
	})
}

func FuzzSummary(f *testing.F) {
	for name := range summaries {
		f.Add(loadtest.Recorded(f, name))
	}
	f.Fuzz(func(_ *testing.T, text string) { _, _ = pgbench.ParseSummary(text) })
}

func TestScripts(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1;\n\\shell rm -rf /": `\shell`, "\\set a 1\n  \\SetShell x date\n": `\SetShell`, "\\set shell 1\nSELECT 1 \\gset\n": "", "\\shellfish": "",
		"\\ \v\tshell date": "\\ \v\tshell", "\\\\\n setshell x date": "\\\\\n setshell", "\\\\\r\nshell date": "\\\\\r\nshell",
	} {
		if got := pgbench.ShellCommand(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The largest scale that fits, by the measured size of a scale.
func TestScale(t *testing.T) {
	for size, want := range map[int64]int{1: 1, 50 << 30: 3424, 1 << 30: 67} {
		got := pgbench.ScaleFor(size)
		if got != want || got > 1 && pgbench.DataBytes(got) > size || pgbench.DataBytes(got+1) <= size {
			t.Errorf("%d bytes: scale %d, want %d", size, got, want)
		}
	}
}
