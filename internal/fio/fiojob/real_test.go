package fiojob_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/region"
	"github.com/braggdev/bragg/internal/testreq"
)

// realFio runs fio with a job file on standard input and returns all it says.
func realFio(t *testing.T, text string, arguments ...string) (string, error) {
	t.Helper()
	if testing.Short() {
		t.Skip("long")
	}
	cmd := exec.Command(testreq.Program(t, "fio"), append(arguments, "-")...)
	cmd.Stdin = strings.NewReader(text)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// parsedByFio returns the first number that fio read for the option of every section, in order; "" where it read none.
func parsedByFio(t *testing.T, key string, values []string) []string {
	t.Helper()
	var b strings.Builder
	for i, v := range values {
		fmt.Fprintf(&b, "[s%d]\nioengine=null\n%s=%s\n", i, key, v)
	}
	said, _ := realFio(t, b.String(), "--parse-only", "--debug=parse")
	var out []string
	inside := false
	for line := range strings.Lines(said) {
		switch {
		case strings.Contains(line, " handle_option="):
			if inside = strings.Contains(line, " handle_option="+key+","); inside {
				out = append(out, "")
			}
		case inside && out[len(out)-1] == "":
			if _, number, found := strings.Cut(line, "ret=0, out="); found {
				out[len(out)-1] = strings.TrimSpace(number)
			}
		}
	}
	if len(out) != len(values) {
		t.Fatalf("fio read %d of %d values:\n%s", len(out), len(values), said)
	}
	return out
}

// TestLiteralNumbersAreWhatFioReads checks the warnings' claim about real fio, and that what is printed for it is read
// as the value that was meant.
func TestLiteralNumbersAreWhatFioReads(t *testing.T) {
	values := []string{
		"4k", "4K", "4kb", "4KB", "4ki", "4kib", "4KiB", "3m", "3mib", "2g", "2gib", "1t", "1.5g", "1.5", "0x1000", "0x10k",
		"100", "100b", "007", "4.k", "123456789", "1p",
	}
	read := parsedByFio(t, "size", values)
	var printed []string
	var meant []int64
	for i, v := range values {
		literal, ok := fiojob.LiteralNumber(v, 1024)
		if !ok || literal != read[i] {
			t.Errorf("size=%s: fio reads %q, we say it reads %q", v, read[i], literal)
		}
		j := only(t, "[a]\nsize="+v+"\n")
		meant = append(meant, j.Size.Bytes)
		printed = append(printed, strings.TrimPrefix(j.Printed(nil)[0], "size="))
	}
	for i, got := range parsedByFio(t, "size", printed) {
		if got != strconv.FormatInt(meant[i], 10) {
			t.Errorf("size=%s is meant as %d and printed as %s, which fio reads as %s", values[i], meant[i], printed[i], got)
		}
	}
}

func TestLiteralTimesAreWhatFioReads(t *testing.T) {
	values := []string{"10", "10s", "2m", "1h", "1d", "100ms", "100msec", "500us", "500usec", "10sec", "1min", "2hours", "1.5", "1.5s"}
	read := parsedByFio(t, "runtime", values)
	var printed []string
	var meant []time.Duration
	for i, v := range values {
		literal, ok := fiojob.LiteralTime(v, time.Second)
		if !ok || strconv.FormatInt(literal.Microseconds(), 10) != read[i] {
			t.Errorf("runtime=%s: fio reads %s µs, we say it reads %v", v, read[i], literal)
		}
		j := only(t, "[a]\nruntime="+v+"\n")
		meant = append(meant, j.Runtime)
		printed = append(printed, strings.TrimPrefix(j.Printed(nil)[0], "runtime="))
	}
	for i, got := range parsedByFio(t, "runtime", printed) {
		if got != strconv.FormatInt(meant[i].Microseconds(), 10) {
			t.Errorf("runtime=%s is meant as %v and printed as %s, which fio reads as %s µs", values[i], meant[i], printed[i], got)
		}
	}
}

// TestFioReadsWhatWePrint gives fio the printed form of our own files of testdata and of every public file.
func TestFioReadsWhatWePrint(t *testing.T) {
	files := jobFiles(t, "testdata", ".fio")
	files = append(files, jobFiles(t, testreq.Corpus(t, "xray"), ".fio")...)
	files = append(files, jobFiles(t, testreq.Corpus(t, "fio"), "")...)
	dir, seen := t.TempDir(), map[string]bool{}
	arguments := []string{"--parse-only"}
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, diags := fiojob.Parse(filepath.Base(file), string(text), fiojob.Options{CPUs: 2, MemoryMB: 1000, Env: plausible})
		// fio 3.33 has no steadystate=lat.
		if diags.HasErrors() || seen[string(text)] || strings.Contains(string(text), "steadystate=lat") {
			continue
		}
		seen[string(text)] = true
		printed := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(file)))
		if err := os.WriteFile(printed, []byte(f.Print(nil)), 0o600); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, printed)
	}
	if len(seen) < 60 {
		t.Errorf("only %d files", len(seen))
	}
	cmd := exec.Command(testreq.Program(t, "fio"), arguments...)
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	if err == nil {
		return
	}
	t.Errorf("fio refuses what was printed: %v\n%s", err, said)
	for _, file := range arguments[1:] {
		one := exec.Command(testreq.Program(t, "fio"), "--parse-only", file)
		one.Dir = dir
		if said, err := one.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, said)
		}
	}
}

// TestExtentsAreWhatFioTouches lets fio's null engine write down what it would do and compares ranges and amounts.
func TestExtentsAreWhatFioTouches(t *testing.T) {
	cases := []string{
		"rw=write\nbs=1m\nsize=8m", "rw=write\nbs=1m\nsize=8m\noffset=4m", "rw=write\nbs=64k\nsize=1000k",
		"rw=write\nbs=1m\nfilesize=16m\noffset=8m\nsize=200m", "rw=write\nbs=1m\nfilesize=16m\noffset=8m\nsize=4m",
		"rw=write\nbs=1m\nfilesize=16m\noffset=8m\nio_size=100m", "rw=write\nbs=1m\nsize=10m\nio_size=25m",
		"rw=write\nbs=1m\nsize=10m\nio_size=3m", "rw=write\nbs=4k\nsize=10m\nfilename=%s:%sb:%sc",
		"rw=randwrite\nnorandommap\nbs=4k\nfilesize=64m\nsize=4m", "rw=randwrite\nbs=4k\nsize=4m\nloops=2",
		"rw=randrw\nbs=64k\nsize=16m", "rw=write\nbs=1m\nsize=4m\noffset_increment=10m\nnumjobs=3",
		"rw=write\nbs=1m\nfilesize=64m\nsize=16m\nzonesize=2m\nzoneskip=6m",
		"rw=randwrite\nnorandommap\nbs=64k\nfilesize=64m\nsize=16m\noffset=8m\nzonesize=2m\nzoneskip=6m",
		"rw=write\nbssplit=4k/50:64k/50\nsize=4m", "rw=randread\nbs=8k\nsize=64m\nio_size=4m\nnorandommap",
	}
	var text strings.Builder
	for i, c := range cases {
		name := fmt.Sprintf("f%d", i)
		c = strings.ReplaceAll(c, "%s", name)
		if !strings.Contains(c, "filename") {
			c += "\nfilename=" + name
		}
		fmt.Fprintf(&text, "[%s]\nioengine=null\nthread=1\n%s\n", name, c)
	}
	f := parse(t, text.String())
	sections := strings.Split(f.Print(nil), "\n\n")
	for i := range sections {
		sections[i] = strings.TrimSpace(sections[i]) + fmt.Sprintf("\nwrite_iolog=log%d\n", i)
	}
	dir := t.TempDir()
	cmd := exec.Command(testreq.Program(t, "fio"), "-")
	cmd.Stdin, cmd.Dir = strings.NewReader(strings.Join(sections, "\n")), dir
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for i, j := range f.Jobs() {
		checkTouched(t, cases[i], j, filepath.Join(dir, fmt.Sprintf("log%d", i)))
	}
}

// checkTouched compares what a log of fio says with the extents and the amount of a job.
func checkTouched(t *testing.T, name string, j fiojob.Job, log string) {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	extents, err := region.Of(&j, func(string) (int64, bool) { return 0, false })
	if err != nil {
		t.Errorf("%q: %v", name, err)
		return
	}
	var bytes int64
	reached := make([]bool, len(extents))
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) != 5 {
			continue
		}
		offset, _ := strconv.ParseInt(fields[3], 10, 64)
		length, _ := strconv.ParseInt(fields[4], 10, 64)
		bytes += length
		inside := false
		for i, e := range extents {
			if e.Device == fields[1] && offset >= e.Offset && offset+length <= e.Offset+e.Length {
				inside = true
				reached[i] = true
			}
		}
		if !inside {
			t.Errorf("%q: fio touches %s, which is in none of %+v", name, strings.TrimSpace(line), extents)
			return
		}
	}
	smallest, largest := j.BlockBounds()
	amount, known := region.Amount(&j)
	want := amount * int64(j.NumJobs) * int64(j.Loops)
	if slack := largest * int64(len(extents)); !known || bytes > want || bytes < want-slack {
		t.Errorf("%q: fio transfers %d bytes, want %d (blocks %d to %d)", name, bytes, want, smallest, largest)
	}
	for i, e := range extents {
		if !reached[i] {
			t.Errorf("%q: fio never touches %+v", name, e)
		}
	}
}
