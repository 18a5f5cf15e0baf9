package iojob_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/fio/iolog"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/testreq"
)

// replay runs a job file with @ replaced by dir, as bragg io does.
func replay(t *testing.T, dir, text string, o iojob.Options) (*fioreport.Report, error) {
	t.Helper()
	file, list := fiojob.Parse("job.fio", strings.ReplaceAll(text, "@", dir), fiojob.Options{Host: true})
	if list.HasErrors() {
		t.Fatal(list)
	}
	o.Folder = dir
	report, err := iojob.Run(t.Context(), file.Jobs(), o)
	if err == nil {
		for _, row := range report.Rows {
			if row.Err != nil {
				return report, row.Err
			}
		}
	}
	return report, err
}

func mustReplay(t *testing.T, dir, text string) *fioreport.Report {
	t.Helper()
	report, err := replay(t, dir, text, iojob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// operations reads a log: file, operation, offset, length, without times; and the times apart, in microseconds from the start.
func operations(t *testing.T, path string) (what []string, micros []int64) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 5 {
			continue
		}
		at, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			t.Fatalf("%s: %q", path, line)
		}
		if strings.HasSuffix(words[2], "sync") {
			words[3], words[4] = "0", "0" // fio has the offset of the write before there
		}
		what = append(what, filepath.Base(words[1])+" "+strings.Join(words[2:], " "))
		micros = append(micros, at)
	}
	return what, micros
}

func sameOperations(t *testing.T, want, got string) {
	t.Helper()
	a, _ := operations(t, want)
	b, _ := operations(t, got)
	if len(a) == 0 || strings.Join(a, "\n") != strings.Join(b, "\n") {
		t.Errorf("%d operations became %d:\n%.2000s\n--\n%.2000s", len(a), len(b), strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
}

// TestLogsOfFioAreReplayed has fio write down what several jobs do and replays it: the same operations in the same order,
// by the null engine and by real I/O at a queue depth of 1.
func TestLogsOfFioAreReplayed(t *testing.T) {
	dir := t.TempDir()
	for name, options := range map[string]string{
		"mixed": "rw=randrw\nbssplit=4k/50:16k/30:64k/20\nsize=4m", "syncs": "rw=write\nbs=32k\nsize=2m\nfsync=3\nfdatasync=5",
		"files": "rw=rw\nbs=8k\nsize=1m\nnrfiles=3", "large": "rw=read\nbs=2m\nsize=16m", "odd": "rw=randwrite\nbs=1000\nsize=100k",
		"loops": "rw=randread\nbs=4k\nsize=256k\nloops=3",
	} {
		t.Run(name, func(t *testing.T) {
			log := name + ".log"
			fio(t, dir, fmt.Sprintf("[%s]\nioengine=null\n%s\nwrite_iolog=%s\n", name, options, log))
			for _, job := range []string{
				"ioengine=null\niodepth=1", "ioengine=null\niodepth=16", "ioengine=psync", "ioengine=io_uring\niodepth=1\nreplay_no_stall=1",
			} {
				mustReplay(t, dir, "[again]\nread_iolog="+log+"\nwrite_iolog=again.log\n"+job+"\n")
				sameOperations(t, filepath.Join(dir, log), filepath.Join(dir, "again.log"))
			}
		})
	}
}

// TestOurLogsAreReplayedByFio writes logs and has fio replay them: it does as many operations and bytes.
func TestOurLogsAreReplayedByFio(t *testing.T) {
	dir := t.TempDir()
	for name, options := range map[string]string{
		"mixed": "rw=randrw\nbssplit=4k/50:16k/50\nsize=1m\nfsync=7", "reads": "rw=read\nbs=64k\nsize=4m\nnrfiles=2",
		"rated": "rw=randwrite\nbs=4k\nsize=1m\nrate_iops=2000\nnumber_ios=200", "deep": "rw=randread\nbs=4k\nsize=1m\nioengine=io_uring\niodepth=16",
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(options, "ioengine") {
				options += "\nioengine=psync"
			}
			report := mustReplay(t, dir, fmt.Sprintf("[%s]\ndirectory=@\n%s\nwrite_iolog=%s.log\n", name, options, name))
			out := fio(t, dir, fmt.Sprintf("[r]\nread_iolog=%s.log\nreplay_no_stall=1\n", name), "--output-format=json")
			var theirs struct {
				Jobs []map[string]json.RawMessage
			}
			if err := json.Unmarshal(out, &theirs); err != nil {
				t.Fatal(err)
			}
			for d, key := range []string{"read", "write"} {
				var sum struct {
					IOs   uint64 `json:"total_ios"`
					Bytes uint64 `json:"io_bytes"`
				}
				if err := json.Unmarshal(theirs.Jobs[0][key], &sum); err != nil {
					t.Fatal(err)
				}
				if ours := report.Rows[0].Directions[d]; ours.Operations != sum.IOs || ours.Bytes != sum.Bytes {
					t.Errorf("%s: we did %d operations and %d bytes, fio replays %+v", key, ours.Operations, ours.Bytes, sum)
				}
			}
		})
	}
}

// TestNullWritesWhatFioWrites: a plan by the null engine has fio's files, offsets and order where nothing is drawn.
func TestNullWritesWhatFioWrites(t *testing.T) {
	dir := t.TempDir()
	for name, options := range map[string]string{
		"files": "rw=write\nbs=64k\nsize=512k\nnrfiles=4", "offset": "rw=read\nbs=16k\nsize=256k\noffset=1m",
		"syncs": "rw=write\nbs=4k\nsize=64k\nfsync=3",
		"apart": "rw=read\nbs=8k\nsize=64k\noffset_increment=1m\nnumjobs=1",
	} {
		job := fmt.Sprintf("[%s]\nioengine=null\n%s\n", name, options)
		fio(t, dir, job+"write_iolog="+name+".fio\n")
		mustReplay(t, dir, job+"write_iolog="+name+".ours\n")
		sameOperations(t, filepath.Join(dir, name+".fio"), filepath.Join(dir, name+".ours"))
	}
	mustReplay(t, dir, "[apart]\nioengine=null\nrw=read\nbs=8k\nsize=16k\noffset_increment=1m\nnumjobs=2\nwrite_iolog=two\n")
	if got, _ := operations(t, filepath.Join(dir, "two.1")); strings.Join(got, "; ") != "apart.1.0 read 1048576 8192; apart.1.0 read 1056768 8192" {
		t.Errorf("the second clone does %q", got)
	}
}

// TestEveryCloneHasItsLogs: clones write logs of their own, and read theirs in turn.
func TestEveryCloneHasItsLogs(t *testing.T) {
	dir := t.TempDir()
	mustReplay(t, dir, "[a]\nioengine=null\nrw=randread\nsize=64k\nnumjobs=2\nwrite_iolog=w.log\n")
	mustReplay(t, dir, "[a]\nioengine=null\nread_iolog=w.log:w.log.1\nnumjobs=3\nwrite_iolog=r.log\nreplay_no_stall=1\n")
	sameOperations(t, filepath.Join(dir, "w.log"), filepath.Join(dir, "r.log"))
	sameOperations(t, filepath.Join(dir, "w.log.1"), filepath.Join(dir, "r.log.1"))
	sameOperations(t, filepath.Join(dir, "w.log"), filepath.Join(dir, "r.log.2"))
}

// timedLog has an operation every two milliseconds.
func timedLog(t *testing.T, dir string, operations int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("fio version 3 iolog\n500 f add\n600 f open\n")
	for i := range operations {
		fmt.Fprintf(&b, "%d f %s %d 4096\n", 1000+i*2000, []string{"read", "write"}[i%2], i*4096)
	}
	path := filepath.Join(dir, "timed.log")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReplayIsOnSchedule: no operation starts before its time, also where time is scaled, and what ran late has a response
// time that says so. Nothing is asserted about how late a loaded machine is.
func TestReplayIsOnSchedule(t *testing.T) {
	dir := t.TempDir()
	timedLog(t, dir, 100)
	for percent, gap := range map[int]int64{100: 2000, 50: 4000, 200: 1000} {
		report := mustReplay(t, dir, fmt.Sprintf("[a]\nioengine=null\nread_iolog=timed.log\nreplay_time_scale=%d\nwrite_iolog=out.log\n", percent))
		_, micros := operations(t, filepath.Join(dir, "out.log"))
		if len(micros) != 100 {
			t.Fatalf("%d operations", len(micros))
		}
		for i, at := range micros {
			if at < int64(i)*gap {
				t.Errorf("at %d %%: operation %d started after %d µs, it is due after %d", percent, i, at, int64(i)*gap)
			}
		}
		if row := report.Rows[0]; row.Due != 100 || row.Directions[interval.Read].Response.Count() != 50 {
			t.Errorf("at %d %%: %d were due, %d have response times", percent, row.Due, row.Directions[interval.Read].Response.Count())
		}
	}
	begun := time.Now()
	report := mustReplay(t, dir, "[a]\nioengine=null\nread_iolog=timed.log\nreplay_no_stall=1\nwrite_iolog=out.log\n")
	if row := report.Rows[0]; row.Due != 0 || row.Directions[interval.Write].Operations != 50 {
		t.Errorf("without stalls: %+v after %s", row.Due, time.Since(begun))
	}
}

// TestLateOperationsHaveTheirResponseTime: at a queue depth of 1 everything that is due at once waits for what is in front.
func TestLateOperationsHaveTheirResponseTime(t *testing.T) {
	dir := t.TempDir()
	text := "fio version 3 iolog\n0 f add\n0 f open\n" + strings.Repeat("0 f write 0 65536\n0 f sync 0 0\n", 200)
	if err := os.WriteFile(filepath.Join(dir, "burst.log"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	row := mustReplay(t, dir, "[a]\nread_iolog=burst.log\n").Rows[0].Directions[interval.Write]
	if row.Operations != 200 || row.Response.Mean() < 10*row.Service.Mean() {
		t.Errorf("%d operations, response time %f, service time %f", row.Operations, row.Response.Mean(), row.Service.Mean())
	}
}

// TestReplayEndsInTime: runtime cuts a replay off.
func TestReplayEndsInTime(t *testing.T) {
	dir := t.TempDir()
	timedLog(t, dir, 100_000)
	row := mustReplay(t, dir, "[a]\nioengine=null\nread_iolog=timed.log\nruntime=200ms\n").Rows[0]
	n := row.Directions[interval.Read].Operations + row.Directions[interval.Write].Operations
	if n > 101 || row.Due > 101 || row.Due < n {
		t.Errorf("%d operations, %d were due", n, row.Due)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file, _ := fiojob.Parse("j", "[a]\nioengine=null\nread_iolog=timed.log\n", fiojob.Options{Host: true})
	if _, err := iojob.Run(ctx, file.Jobs(), iojob.Options{Folder: dir}); err != nil {
		t.Errorf("a replay that is stopped at once: %v", err)
	}
}

func TestReplaysThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("kernel.log", "fio version 3 iolog\n0 /proc/sys/kernel/hostname add\n0 /proc/sys/kernel/hostname write 0 4\n")
	write("null.log", "fio version 3 iolog\n0 /dev/null add\n0 /dev/null write 0 4\n")
	write("folder.log", "fio version 3 iolog\n0 / add\n0 / write 0 4\n")
	write("large.log", "fio version 3 iolog\n0 f add\n0 f read 1000000000000000 4096\n")
	write("write.log", "fio version 3 iolog\n0 f add\n0 f write 0 4096\n")
	write("fault.log", "fio version 3 iolog\n0 f add\n0 f raed 0 4096\n")
	write("precious", "not a log")
	for job, c := range map[string]struct {
		code int
		want string
	}{
		"read_iolog=kernel.log":                             {diag.ExitRefused, "a file of the kernel"},
		"read_iolog=null.log":                               {diag.ExitRefused, "names device \"/dev/null\""},
		"read_iolog=folder.log":                             {diag.ExitData, "neither a file nor a block device"},
		"read_iolog=large.log":                              {diag.ExitUnavailable, "are free beside it"},
		"read_iolog=write.log":                              {diag.ExitRefused, "--readonly forbids it"},
		"read_iolog=fault.log":                              {diag.ExitData, "fault.log:3:5: unknown action"},
		"read_iolog=none.log":                               {diag.ExitData, "no such file"},
		"ioengine=null\nsize=1m\nwrite_iolog=precious":      {diag.ExitData, "is there and no log"},
		"ioengine=null\nsize=1m\nwrite_iolog=no/folder.log": {diag.ExitData, "no such file"},
	} {
		_, err := replay(t, dir, "[a]\n"+job+"\n", iojob.Options{ReadOnly: strings.Contains(job, "write.log")})
		if err == nil || diag.ExitCode(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, exit code %d", job, err, diag.ExitCode(err))
		}
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "precious")); string(text) != "not a log" {
		t.Errorf("a file that is not a log is now %q", text)
	}
}

// TestLogThatCannotBeWrittenEndsTheLoad: a full disk is reported, and soon.
func TestLogThatCannotBeWrittenEndsTheLoad(t *testing.T) {
	dir := t.TempDir()
	report, err := replay(t, dir, "[a]\nioengine=null\nrw=randread\nsize=1g\ntime_based\nruntime=10m\nwrite_iolog=/dev/full\n", iojob.Options{})
	if err == nil || !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), "/dev/full") {
		t.Errorf("%v", err)
	}
	if report == nil || report.Rows[0].Directions[interval.Read].Operations == 0 {
		t.Error("nothing is reported of what was done")
	}
}

// TestReplayAllocatesNothingPerOperation replays and writes logs of two lengths.
func TestReplayAllocatesNothingPerOperation(t *testing.T) {
	dir := t.TempDir()
	measure := func(n int) uint64 {
		text := []byte("fio version 3 iolog\n0 f add\n")
		for i := range n {
			text = append(text, "0 f write "...)
			text = strconv.AppendInt(text, int64(i%1000)*4096, 10)
			text = append(text, " 4096\n"...)
		}
		if err := os.WriteFile(filepath.Join(dir, "l"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		mustReplay(t, dir, "[a]\nioengine=null\niodepth=8\nread_iolog=l\nwrite_iolog=w\n")
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := measure(100_000), measure(600_000)
	if many > few+2<<20 { // 500,000 times the smallest allocation are 4 MB
		t.Errorf("a replay of 100000 operations takes %d bytes, of 600000 %d", few, many)
	}
}

// TestPlansOfReplays: a plan has the operations of the log, with their times.
func TestPlansOfReplays(t *testing.T) {
	dir := t.TempDir()
	timedLog(t, dir, 3000)
	file, _ := fiojob.Parse("j", "[a]\nread_iolog=timed.log\n", fiojob.Options{Host: true})
	var out bytes.Buffer
	if err := iojob.WritePlan(&out, file.Jobs(), iojob.Options{Folder: dir}, 0); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3001 || !strings.Contains(lines[2999], `"op":"write","offset":12283904,"length":4096,"time_us":5998000.000`) {
		t.Errorf("%d lines, %.300s", len(lines), lines[min(2999, len(lines)-1)])
	}
	if _, err := os.Stat(filepath.Join(dir, "f")); err == nil {
		t.Error("a plan made a file")
	}
}

// TestReplayOnDevices: a device that the log names must be named by the job or the command line too, must be large enough,
// and takes trims.
func TestReplayOnDevices(t *testing.T) {
	dir := t.TempDir()
	backing := filepath.Join(dir, "backing")
	if err := os.WriteFile(backing, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	device := testreq.Loop(t, backing)
	log := fmt.Sprintf("fio version 3 iolog\n0 %[1]s add\n0 %[1]s open\n0 %[1]s read 0 4096\n", device)
	write := func(more string) {
		if err := os.WriteFile(filepath.Join(dir, "l"), []byte(log+strings.ReplaceAll(more, "@", device)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	_, err := replay(t, dir, "[a]\nread_iolog=l\n", iojob.Options{})
	if diag.ExitCode(err) != diag.ExitRefused || !strings.Contains(err.Error(), device) {
		t.Errorf("a device that only the log names: %v", err)
	}
	mustReplay(t, dir, "[a]\nread_iolog=l\nfilename="+device+"\n")
	if _, err := replay(t, dir, "[a]\nread_iolog=l\n", iojob.Options{AllowDevice: func(p string) bool { return p == device }}); err != nil {
		t.Error(err)
	}
	write("5 @ read 100 4096\n")
	_, err = replay(t, dir, "[a]\nread_iolog=l\ndirect=1\nfilename="+device+"\n", iojob.Options{})
	if err == nil || !strings.Contains(err.Error(), "multiples of 4 bytes") {
		t.Errorf("a log that is not aligned: %v", err)
	}
	write("5 @ read 4194304 4096\n")
	_, err = replay(t, dir, "[a]\nread_iolog=l\nfilename="+device+"\n", iojob.Options{})
	var userErr *diag.Error
	if !errors.As(err, &userErr) || !strings.Contains(userErr.Hint, "replay_scale=5") {
		t.Errorf("a log that goes beyond the device: %v", err)
	}
	write("5 @ write 4096 4096\n6 @ sync 0 0\n7 @ trim 8192 8192\n")
	_, err = replay(t, dir, "[a]\nread_iolog=l\nfilename="+device+"\n", iojob.Options{})
	if diag.ExitCode(err) != diag.ExitRefused {
		t.Errorf("a log that writes to a device without consent: %v", err)
	}
	open := func(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR, 0) }
	report, err := replay(t, dir, "[a]\nread_iolog=l\nfilename="+device+"\n", iojob.Options{OpenDevice: open})
	if err != nil || report.Rows[0].Directions[interval.Trim].Operations != 1 || report.Rows[0].Directions[interval.Write].Operations != 1 {
		t.Errorf("%v %+v", err, report)
	}
	if text, err := os.ReadFile(backing); err != nil || bytes.Equal(text[4096:8192], make([]byte, 4096)) {
		t.Errorf("nothing was written: %v", err)
	}
}

// TestChangedLog: a log that changes under a replay is noticed.
func TestChangedLog(t *testing.T) {
	dir := t.TempDir()
	path := timedLog(t, dir, 5000)
	log, err := iolog.Open(path, iolog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = log.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.ReplaceAll(text, []byte(" 4096\n"), []byte(" 8192\n"))
	say := func(string) { // comes when the log was looked through
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Error(err)
		}
	}
	_, err = replay(t, dir, "[a]\nioengine=null\nread_iolog=timed.log\nreplay_no_stall=1\n", iojob.Options{Say: say})
	if err == nil || !strings.Contains(err.Error(), "not what it was") {
		t.Errorf("a log that was changed: %v", err)
	}
}

// TestLateOperationsOfALogAreDropped: with a bound on lateness a replay leaves out what is later, and counts it.
func TestLateOperationsOfALogAreDropped(t *testing.T) {
	dir := t.TempDir()
	text := "fio version 3 iolog\n0 f add\n0 f open\n" + strings.Repeat("0 f write 0 65536\n0 f sync 0 0\n", 500)
	if err := os.WriteFile(filepath.Join(dir, "burst.log"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := replay(t, dir, "[a]\nread_iolog=burst.log\n", iojob.Options{DropAfter: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	row := report.Rows[0]
	if n := row.Directions[interval.Write].Operations; n == 500 || row.Due != 500 || row.NotIssued != 500-n {
		t.Errorf("%d of 500 operations were done, %d due, %d not issued", n, row.Due, row.NotIssued)
	}
}
