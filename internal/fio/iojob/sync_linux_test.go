package iojob_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/testreq"
)

// traced runs fio on a job file and returns its system calls of these names, in their order, with all threads and processes.
func traced(t *testing.T, dir, text, calls string) []string {
	t.Helper()
	testreq.Program(t, "fio")
	path, log := filepath.Join(dir, "job.fio"), filepath.Join(dir, "strace.log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), testreq.Program(t, "strace"), "-f", "-y", "-e", "trace="+calls, "-o", log, "fio", path)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("strace fio: %v\n%s", err, out)
	}
	out, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(out), "\n")
}

// step is a write or a sync of a range.
type step struct {
	sync     bool
	from, to int64
	flags    string
}

var (
	writeCall = regexp.MustCompile(`pwrite64\(.*, (\d+), (\d+)\) = `)
	rangeCall = regexp.MustCompile(`sync_file_range\([^,]*, (\d+), (\d+), ([A-Z_|]+)\) = 0`)
)

func stepsOfFio(t *testing.T, dir, text string) (steps []step) {
	t.Helper()
	for _, line := range traced(t, dir, text, "pwrite64,sync_file_range") {
		number := func(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n }
		if m := writeCall.FindStringSubmatch(line); m != nil && strings.Contains(line, "/f>") {
			steps = append(steps, step{from: number(m[2]), to: number(m[2]) + number(m[1])})
		} else if m := rangeCall.FindStringSubmatch(line); m != nil {
			steps = append(steps, step{sync: true, from: number(m[1]), to: number(m[1]) + number(m[2]), flags: m[3]})
		}
	}
	return steps
}

func stepsOfPlan(t *testing.T, dir, text string) (steps []step) {
	t.Helper()
	for _, p := range plan(t, dir, text, 0) {
		if p.End == nil {
			steps = append(steps, step{sync: p.Op == "sync_file_range", from: p.Offset, to: p.Offset + p.Length})
		}
	}
	return steps
}

// checkSteps wants a sync after every so many writes, of what was written since the last one. The first one of fio begins at 0.
func checkSteps(t *testing.T, who string, steps []step, every int) {
	t.Helper()
	writes, syncs := 0, 0
	low, high := int64(math.MaxInt64), int64(0)
	for i, s := range steps {
		if !s.sync {
			writes++
			low, high = min(low, s.from), max(high, s.to)
			continue
		}
		syncs++
		if who == "fio" && syncs == 1 && s.from == 0 {
			low = 0
		}
		if writes != syncs*every || s.from != low || s.to != high {
			t.Fatalf("%s: step %d syncs %d-%d after %d writes of %d-%d", who, i, s.from, s.to, writes, low, high)
		}
		low, high = math.MaxInt64, 0
	}
	if behind := writes/every - syncs; writes != 64 || behind < 0 || behind > 1 { // fio leaves out one behind the last write
		t.Errorf("%s: %d syncs in %d writes, want one after each %d", who, syncs, writes, every)
	}
}

func TestRangeSyncsAsInFio(t *testing.T) {
	for flags, called := range map[string]string{
		"write": "SYNC_FILE_RANGE_WRITE", "wait_before,write": "SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE",
		"wait_before,write,wait_after": "SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE|SYNC_FILE_RANGE_WAIT_AFTER",
	} {
		for _, rw := range []string{"write", "randwrite"} {
			dir := t.TempDir()
			text := fmt.Sprintf("[a]\nfilename=%s/f\nrw=%s\nsize=256k\nsync_file_range=%s:8\n", dir, rw, flags)
			checkSteps(t, "bragg", stepsOfPlan(t, dir, text), 8)
			if testing.Short() {
				continue
			}
			steps := stepsOfFio(t, dir, text)
			checkSteps(t, "fio", steps, 8)
			for _, s := range steps {
				if s.sync && s.flags != called {
					t.Errorf("fio %s: %s", flags, s.flags)
				}
			}
		}
	}
}

// All back ends do them, and they count as syncs.
func TestRangeSyncsAreDone(t *testing.T) {
	for _, backend := range []string{"io_uring", "libaio", "psync", "pvsync2", "mmap"} {
		dir := t.TempDir()
		_, file := parse(t, dir, "[a]\nfilename=@/f\nrw=randwrite\nsize=1m\niodepth=4\nioengine=libaio\nsync_file_range=wait_before,write,wait_after:4\n")
		report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Backend: backend})
		if err != nil {
			t.Fatal(err)
		}
		row := &report.Rows[0]
		if n := row.Account.Syncs.Count(); row.Err != nil || n != 64 || row.Directions[1].Operations != 256 {
			t.Errorf("%s: %d syncs, %d writes, %v", backend, n, row.Directions[1].Operations, row.Err)
		}
	}
}

// write_barrier changes nothing that fio does.
func TestBarriersOfFioAreNone(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := t.TempDir()
	var before string
	for _, option := range []string{"", "write_barrier=4\n"} {
		text := "[a]\nfilename=" + dir + "/f\nrw=write\nsize=64k\n" + option
		all := ""
		for _, line := range traced(t, dir, text, "pwrite64,fsync,fdatasync,sync_file_range,pwritev2") {
			if strings.Contains(line, "/f>") {
				_, call, _ := strings.Cut(line, " ")
				all += call[:strings.IndexByte(call, '(')] + call[strings.LastIndexByte(call, ','):] + "\n"
			}
		}
		if before != "" && all != before || !strings.Contains(all, "pwrite64") {
			t.Errorf("with write_barrier fio does\n%s\nand without\n%s", all, before)
		}
		before = all
	}
}

// end_fsync flushes each file that was written, however few operations may be in flight.
func TestEndSyncsAsInFio(t *testing.T) {
	dir := t.TempDir()
	text := "[a]\ndirectory=@\nrw=write\nsize=96k\nnrfiles=3\nend_fsync=1\ncreate_fsync=0\n"
	text, file := parse(t, dir, text)
	row := &runJobs(t, file).Rows[0]
	if n := row.Account.Syncs.Count(); n != 3 || row.Directions[1].Operations != 24 || row.Err != nil {
		t.Errorf("%d syncs, %d writes, %v", n, row.Directions[1].Operations, row.Err)
	}
	if testing.Short() {
		t.Skip("fio is traced too")
	}
	flushed := map[string]int{}
	for _, line := range traced(t, dir, text, "fsync") {
		if _, name, found := strings.Cut(line, "/a.0."); found {
			flushed[name[:1]]++
		}
	}
	if len(flushed) != 3 {
		t.Errorf("fio flushed %v", flushed)
	}
}
