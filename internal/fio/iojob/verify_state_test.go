//go:build linux

package iojob_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/testreq"
)

const stoppedJob = "[w]\nfilename=@/file\nsize=32m\nbs=4k\nioengine=libaio\niodepth=4\ndirect=1\nverify=crc32c\n"

// stopped runs a job until some of its writes are done, stops it, and returns how many were.
func stopped(t *testing.T, dir, text string) uint64 {
	t.Helper()
	file, list := fiojob.Parse("job.fio", strings.ReplaceAll(text, "@", dir), fiojob.Options{Host: true})
	if list.HasErrors() {
		t.Fatal(list)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	report, err := iojob.Run(ctx, file.Jobs(), iojob.Options{Folder: dir, WatchEvery: 20 * time.Millisecond, Watch: func(r *fioreport.Report) {
		if r.Rows[0].Directions[interval.Write].Operations > 100 {
			stop()
		}
	}})
	if err != nil || report.Rows[0].Err != nil {
		t.Fatal(err, report)
	}
	return report.Rows[0].Directions[interval.Write].Operations
}

// readBack runs a job that only verifies and returns how many reads it took, or its error.
func readBack(t *testing.T, dir, text string) (uint64, error) {
	t.Helper()
	file, list := fiojob.Parse("job.fio", strings.ReplaceAll(text, "@", dir)+"verify_only\n", fiojob.Options{Host: true})
	if list.HasErrors() {
		t.Fatal(list)
	}
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Folder: dir})
	if err != nil {
		return 0, err
	}
	return report.Rows[0].Directions[interval.Read].Operations, report.Rows[0].Err
}

// What a stopped job wrote is read back as far as it came, in any order of writes; without the state what was never written
// is found wrong.
func TestStoppedJobIsReadBack(t *testing.T) {
	for _, options := range []string{
		"rw=write\nrate_iops=1000\n", "rw=randwrite\nrate_iops=1000\n", "rw=randwrite\nrate_iops=1000\nnorandommap\n",
		"rw=randwrite\nrate_iops=1000\nnrfiles=2\nfilename=@/one:@/two\n",
	} {
		dir := t.TempDir()
		text := stoppedJob + options
		written := stopped(t, dir, text)
		if written >= 8192 {
			t.Fatalf("%s: it was not stopped", options)
		}
		reads, err := readBack(t, dir, text+"verify_state_load=1\n")
		most := written
		if err != nil || reads > most || reads == 0 || !strings.Contains(options, "norandommap") && reads != written {
			t.Errorf("%s: %d reads of %d writes, %v", options, reads, written, err)
		}
		if _, err := readBack(t, dir, text); err == nil {
			t.Errorf("%s: the rest is accepted without the state", options)
		}
	}
}

// A write that failed is not one to read back, and a state that could not say so is not written.
func TestFailedWritesAreNotInTheState(t *testing.T) {
	for _, c := range []struct {
		options string
		saved   bool
	}{
		{"size=1088k\niodepth=4\nioengine=posixaio", true}, // 17 blocks where 16 fit: the last one fails
		{"size=2m\niodepth=4\nioengine=posixaio", false},   // 16 fail, and the state has room for 4
		{"size=1088k", true},                               // at depth 1 it knows of the failed one alone
	} {
		dir, states := smallDisk(t), t.TempDir()
		text := "[a]\nfilename=" + filepath.Join(dir, "f") + "\nbs=64k\nverify=crc32c\nfallocate=none\n" + c.options + "\n"
		write := text + "rw=write\ndo_verify=0\nverify_state_save=1\ncontinue_on_error=write\n"
		file, list := fiojob.Parse("job.fio", write, fiojob.Options{Host: true})
		if list.HasErrors() {
			t.Fatal(list)
		}
		report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Folder: states})
		if err != nil || report.Rows[0].Err != nil || report.Rows[0].Directions[interval.Write].Errors["ENOSPC"] == 0 {
			t.Fatal(err, report.Rows[0].Err, report.Rows[0].Directions[interval.Write].Errors)
		}
		saved, err := filepath.Glob(filepath.Join(states, "*.state"))
		if err != nil || (len(saved) == 1) != c.saved {
			t.Errorf("%s: states %q, %v", c.options, saved, err)
		}
		if !c.saved {
			continue
		}
		reads, err := readBack(t, states, text+"rw=write\nverify_state_load=1\n")
		if err != nil || reads != 16 {
			t.Errorf("%s: %d reads, %v, want those 16 that were written", c.options, reads, err)
		}
	}
}

// A requested state that cannot be written is reported when the job ends, not when the state is needed.
func TestJobWithoutStateSaysSo(t *testing.T) {
	for rw, want := range map[string]bool{"rw": true, "randrw": true, "write": false} {
		dir := t.TempDir()
		_, file := parse(t, dir, "[a]\nfilename=@/f\nsize=64k\nverify=crc32c\nverify_state_save=1\nrw="+rw+"\n")
		var said []string
		options := iojob.Options{Folder: dir, Say: func(line string) { said = append(said, line) }}
		if _, err := iojob.Run(t.Context(), file.Jobs(), options); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(said, "\n"), "leaves no verification state"); got != want {
			t.Errorf("rw=%s: said %q", rw, said)
		}
	}
}

// Each tool verifies what the other wrote until it was stopped.
func TestStoppedJobsOfBothTools(t *testing.T) {
	testreq.Program(t, "fio")
	text := stoppedJob + "rw=write\nrate_iops=1000\n"
	dir := t.TempDir()
	written := stopped(t, dir, text)
	var doc struct {
		Jobs []struct {
			Error int `json:"error"`
			Read  struct {
				Total uint64 `json:"total_ios"`
			} `json:"read"`
		} `json:"jobs"`
	}
	out := fioAnyway(t, dir, strings.ReplaceAll(text, "@", dir), "--output-format=json", "--verify_state_load=1", "--verify_only=1")
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Jobs[0].Error != 0 || doc.Jobs[0].Read.Total != written {
		t.Errorf("fio reads %d of our %d writes, error %d", doc.Jobs[0].Read.Total, written, doc.Jobs[0].Error)
	}

	for _, rw := range []string{"write", "randwrite"} {
		dir = t.TempDir()
		text := strings.ReplaceAll(stoppedJob, "@", dir) + "rate_iops=1000\nrw=" + rw + "\n"
		stopFio(t, dir, text)
		reads, err := readBack(t, dir, text+"verify_state_load=1\n")
		// In fio's random order it is found by its headers: reads of the whole file come on top.
		if err != nil || reads == 0 || reads >= 8192 && rw == "write" {
			t.Errorf("%s: %d reads of what fio wrote, %v", rw, reads, err)
		}
		path, at := headerAfter(t, filepath.Join(dir, "file"), 40960)
		flip(t, path, at+100)
		if _, err := readBack(t, dir, text+"verify_state_load=1\n"); err == nil {
			t.Errorf("%s: a flipped bit in what fio wrote is not detected", rw)
		}
	}
}

// stopFio runs fio until it has written something, and interrupts it.
func stopFio(t *testing.T, dir, text string) {
	t.Helper()
	path := filepath.Join(dir, "job.fio")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("fio", "--fallocate=none", path)
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, bytes := occupiedOrNone(filepath.Join(dir, "file")); bytes > 1<<20 || time.Now().After(until) {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // interrupted, it may end with any code
}

func occupiedOrNone(path string) (length, bytes int64) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return 0, 0
	}
	return st.Size, st.Blocks * 512
}

// States that are none, or are not there, are errors that name the file, before anything is read.
func TestStatesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	text := stoppedJob + "rw=write\nsize=1m\nverify_state_save=1\n"
	if _, err := runHere(t, dir, text); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "local-w-0-verify.state")
	good, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	if reads, err := readBack(t, dir, text+"verify_state_load=1\n"); err != nil || reads != 256 {
		t.Errorf("%d reads, %v", reads, err)
	}
	for what, change := range map[string]func() error{
		"damaged":  func() error { return os.WriteFile(state, append(good[:40:40], make([]byte, len(good)-40)...), 0o600) },
		"bytes, a": func() error { return os.WriteFile(state, good[:20], 0o600) },
		"version":  func() error { return os.WriteFile(state, make([]byte, 500), 0o600) },
		"more than": func() error {
			if err := os.WriteFile(state, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(state, 1<<30)
		},
		"no such file": func() error { return nil },
		"regular":      func() error { return syscall.Mkfifo(state, 0o600) },
	} {
		if err := os.RemoveAll(state); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if _, err := readBack(t, dir, text+"verify_state_load=1\n"); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
	if _, list := fiojob.Parse("job.fio", "[a]\nfilename=/dev/sdb\nverify_state_load=1\n", fiojob.Options{}); !list.HasErrors() {
		t.Error("verify_state_load is not refused where jobs are not of this machine")
	}
}

// runHere runs jobs whose files and states are in dir.
func runHere(t *testing.T, dir, text string) (*fioreport.Report, error) {
	t.Helper()
	file, list := fiojob.Parse("job.fio", strings.ReplaceAll(text, "@", dir), fiojob.Options{Host: true})
	if list.HasErrors() {
		t.Fatal(list)
	}
	return iojob.Run(t.Context(), file.Jobs(), iojob.Options{Folder: dir})
}
