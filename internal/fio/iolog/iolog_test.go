package iolog_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/iolog"
)

var update = flag.Bool("update", false, "rewrite golden files")

// read returns all operations of a log and what is known of it.
func read(t testing.TB, text string, o iolog.Options) ([]iolog.Action, iolog.Summary) {
	t.Helper()
	s, err := iolog.Scan("log", strings.NewReader(text), o)
	if err != nil {
		t.Fatalf("scan: %v\n%s", err, text)
	}
	return actions(t, text, o), s
}

func actions(t testing.TB, text string, o iolog.Options) (all []iolog.Action) {
	t.Helper()
	r, err := iolog.NewReader("log", strings.NewReader(text), o)
	for err == nil {
		var a iolog.Action
		if err = r.Next(&a); err == nil {
			all = append(all, a)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return all
}

func show(all []iolog.Action, s iolog.Summary) string {
	var b strings.Builder
	for _, a := range all {
		fmt.Fprintf(&b, "%d %s %s %d %d\n", a.Nanos/1000, s.Files[a.File].Name, a.Kind, a.Offset, a.Size)
	}
	return b.String()
}

func TestTextLogs(t *testing.T) {
	const v3 = "fio version 3 iolog\n2000 a add\n2000 b c add\n2001 idle add\n2100 a open\n2200 a read 0 4096\n2300 b c write 8192 512\n" +
		"2250 a trim 0 65536\n2400 a sync 0 0\n2500 a datasync 3 4\n2600 a read 1 0\n2700 a close\n"
	const v2 = "fio version 2 iolog\na add\na open\na wait 1000 0\na read 0 4096\na wait 500 0\na wait 99 0\na write 4096 4096\na close\n"
	for _, c := range []struct {
		name, text string
		o          iolog.Options
		want       string
	}{
		{name: "version 3, names with blanks, times that go back", text: v3,
			want: "0 a read 0 4096\n100 b c write 8192 512\n100 a trim 0 65536\n200 a sync 0 0\n300 a datasync 0 0\n"},
		{name: "line ends of Windows", text: strings.ReplaceAll(v3, "\n", "\r\n"),
			want: "0 a read 0 4096\n100 b c write 8192 512\n100 a trim 0 65536\n200 a sync 0 0\n300 a datasync 0 0\n"},
		{name: "twice as fast", text: v3, o: iolog.Options{SpeedPercent: 200},
			want: "0 a read 0 4096\n50 b c write 8192 512\n50 a trim 0 65536\n100 a sync 0 0\n150 a datasync 0 0\n"},
		{name: "redirected, without syncs", text: v3, o: iolog.Options{Redirect: "x", Skip: [iolog.KindCount]bool{iolog.Sync: true, iolog.DataSync: true}},
			want: "0 x read 0 4096\n100 x write 8192 512\n100 x trim 0 65536\n"},
		{name: "skipped operations take time", text: v3, o: iolog.Options{Skip: [iolog.KindCount]bool{iolog.Read: true}},
			want: "100 b c write 8192 512\n100 a trim 0 65536\n200 a sync 0 0\n300 a datasync 0 0\n"},
		{name: "scaled and aligned", text: "fio version 2 iolog\na add\na read 20000 512\n", o: iolog.Options{Scale: 2, Align: 4096},
			want: "0 a read 8192 512\n"},
		{name: "version 2", text: v2, want: "1000 a read 0 4096\n1500 a write 4096 4096\n"},
		{name: "version 2, waits as in fio 3.33", text: v2, o: iolog.Options{WaitsOfFio: true},
			want: "1000000 a read 0 4096\n1000000 a write 4096 4096\n"},
		{name: "two recordings in one file", text: "fio version 3 iolog\n5 a add\n10 a read 0 1\n20 a read 1 1\nfio version 3 iolog\n5 a add\n10 a read 2 1\n",
			want: "0 a read 0 1\n10 a read 1 1\n20 a read 2 1\n"},
		{name: "no line feed at the end", text: "fio version 3 iolog\n5 a add\n10 a read 0 1", want: "0 a read 0 1\n"},
		{name: "blank lines", text: "fio version 2 iolog\n\na add\n\n  a\tread 0  1 \n", want: "0 a read 0 1\n"},
		{name: "a name like an operation", text: "fio version 2 iolog\nx read 0 4 add\nx read 0 4 read 8 2\n", want: "0 x read 0 4 read 8 2\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, s := read(t, c.text, c.o)
			if got := show(all, s); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	_, s := read(t, "fio version 3 iolog\n1 a add\n1 b add\n1 idle add\n10 a read 0 4096\n1010 b write 1024 512\n2010 a read 8192 8192\n"+
		"2010 b trim 0 1048576\n3010 b sync 0 0\n", iolog.Options{})
	if s.Version != "fio iolog version 3" || len(s.Files) != 2 || s.Files[0].End != 16384 || s.Files[1].End != 1<<20 ||
		s.Files[0].Writes() || !s.Files[1].Writes() || s.SizeMax != 8192 || s.Align != 512 || s.Nanos != 3_000_000 || s.Data() != 4 ||
		s.Bytes[iolog.Read] != 12288 || len(s.Warnings) > 0 {
		t.Errorf("%+v", s)
	}
	for at, want := range map[int64]int64{0: 0, 1: 1, 1_000_000: 1, 1_000_001: 2, 2_000_001: 4, math.MaxInt64: 4} {
		if got := s.Schedule.DueBefore(at); got != want {
			t.Errorf("%d operations are due before %d ns, want %d", got, at, want)
		}
	}
}

// TestFaults compares what is said about logs with faults with a golden text.
func TestFaults(t *testing.T) {
	var out bytes.Buffer
	for _, text := range []string{
		"", "hello\n", "\x07tae\x01\x00\x00\x00", "eat\x07\x00\x00\x00\x01", "fio version 1 iolog\n", "fio version 4 iolog\nx\n", "fio version 2 iolog\n", "fio version 3 iolog\n10 a add\n20 a open\n",
		"fio version 2 iolog\na add\na raed 0 4096\n", "fio version 2 iolog\na add\na read 0\n", "fio version 2 iolog\na add\na read\n",
		"fio version 2 iolog\na add\na read 512 1k\n", "fio version 2 iolog\na add\na read -1 5\n", "fio version 2 iolog\na add\nb read 0 4096\n",
		"fio version 2 iolog\na add\na read 0 9999999999999\n", "fio version 2 iolog\na add\na read 9223372036854775807 4096\n",
		"fio version 2 iolog\na add\na read 99999999999999999999 4096\n", "fio version 2 iolog\n# made by hand\na add\n",
		"fio version 3 iolog\na add\n", "fio version 3 iolog\n1 a add\n2 a wait 100 0\n", "fio version 3 iolog\n99999999999999999 a add\n",
		"fio version 2 iolog\na\n", "fio version 2 iolog\na add\na wait 9999999999999999 0\n", "fio version 3 iolog\n5\n",
		"fio version 2 iolog\n" + strings.Repeat("x", 20000) + " add\n", "fio version 2 iolog\na add\n" + strings.Repeat("y", 300000),
		"fio version 2 iolog\n" + strings.Repeat("z", 5000) + " add\n", "fio version 2 iolog\n" + strings.Repeat("b read 0 1\n", 100),
		"fio version 2 iolog\na add\na read 0 0\n",
	} {
		_, err := iolog.Scan("log", strings.NewReader(text), iolog.Options{})
		var faults *diag.ListError
		if !errors.As(err, &faults) {
			t.Errorf("%.40q: %v", text, err)
			continue
		}
		fmt.Fprintf(&out, "%.60q\n", text)
		if err := diag.Render(&out, faults.List); err != nil {
			t.Fatal(err)
		}
		out.WriteByte('\n')
	}
	golden(t, "faults.txt", out.Bytes())
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs (rewrite with -update): %v\n%s", path, err, got)
	}
}

// TestWhatIsWrittenIsRead writes any operations in both versions and reads them back.
func TestWhatIsWrittenIsRead(t *testing.T) {
	files := []string{"a", "/dev/x y", "c:d"}
	action := rapid.Custom(func(t *rapid.T) iolog.Action {
		a := iolog.Action{
			Kind: iolog.Kind(rapid.IntRange(0, int(iolog.DataSync)).Draw(t, "kind")), File: int32(rapid.IntRange(0, 2).Draw(t, "file")),
			Nanos: rapid.Int64Range(0, 1e12).Draw(t, "gap") / 1e5 * 1e5,
		}
		if a.Kind <= iolog.Trim {
			a.Offset, a.Size = rapid.Int64Range(0, 1<<50).Draw(t, "offset"), rapid.Int64Range(1, 1<<30).Draw(t, "size")
		}
		return a
	})
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.SliceOfN(action, 1, 50).Draw(rt, "actions")
		for i := 1; i < len(want); i++ {
			want[i].Nanos += want[i-1].Nanos
		}
		for version := 2; version <= 3; version++ {
			var text bytes.Buffer
			w, err := iolog.NewWriter(&text, version, files)
			for i := range want {
				err = errors.Join(err, w.Write(&want[i]))
			}
			if err = errors.Join(err, w.Close(want[len(want)-1].Nanos)); err != nil {
				rt.Fatal(err)
			}
			got, s := read(t, text.String(), iolog.Options{})
			base := want[0].Nanos * int64(version-2) // version 3 counts from its first operation
			for i := range got {
				w, g := want[i], got[i]
				if files[w.File] != s.Files[g.File].Name || w.Nanos-base != g.Nanos || w.Kind != g.Kind || w.Offset != g.Offset || w.Size != g.Size {
					rt.Fatalf("version %d, operation %d: %+v became %+v\n%s", version, i, w, g, text.String())
				}
			}
			if len(got) != len(want) {
				rt.Fatalf("%d operations became %d", len(want), len(got))
			}
		}
	})
}

// lines is a log without end, cut to a number of operations.
type lines struct {
	left, n int
	rest    []byte
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) < len(p) && l.left > 0 {
		if l.n == 0 {
			l.rest = append(l.rest, "fio version 3 iolog\n0 /data/file add\n0 /data/file open\n"...)
		}
		l.rest = strconv.AppendInt(l.rest, int64(l.n), 10)
		l.rest = append(l.rest, " /data/file write "...)
		l.rest = strconv.AppendInt(l.rest, int64(l.n*7919%100000)*4096, 10)
		l.rest = append(l.rest, " 4096\n"...)
		l.n++
		l.left--
	}
	n := copy(p, l.rest)
	l.rest = l.rest[:copy(l.rest, l.rest[n:])]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestLongLogsTakeLittleMemory scans more operations than would fit in what it may allocate.
func TestLongLogsTakeLittleMemory(t *testing.T) {
	const operations = 1_000_000 // 40 MB of text
	measure := func(n int) uint64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s, err := iolog.Scan("log", &lines{left: n}, iolog.Options{})
		if err != nil || s.Data() != int64(n) {
			t.Fatal(s.Data(), err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := measure(100_000), measure(operations)
	if many > few+few/2+(1<<20) {
		t.Errorf("%d operations take %d bytes, %d take %d", 100_000, few, operations, many)
	}
}

// TestScheduleOfALongLog compares the coarse schedule of many operations with the exact one.
func TestScheduleOfALongLog(t *testing.T) {
	const operations = 100_000
	s, err := iolog.Scan("log", &lines{left: operations}, iolog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for at := int64(0); at < operations+1000; at += 997 {
		got := s.Schedule.DueBefore(at * 1000)
		if exact := min(at, operations); math.Abs(float64(got-exact)) > 16 || got < last {
			t.Fatalf("%d operations are due before %d µs, want about %d and at least %d", got, at, exact, last)
		}
		last = got
	}
}

func BenchmarkScan(b *testing.B) {
	b.ReportAllocs()
	var text bytes.Buffer
	if _, err := io.Copy(&text, &lines{left: 100_000}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := iolog.Scan("log", bytes.NewReader(text.Bytes()), iolog.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
