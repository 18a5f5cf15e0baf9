package iojob_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
)

// A job has the draws of its place in the file and not of its name, so that one with another name verifies what it wrote,
// also where it wrote only a part.
func TestDrawsDependOnNoName(t *testing.T) {
	for _, options := range []string{
		"rw=randwrite\nio_size=500k",
		"rw=randwrite\nnumber_ios=100",
		"rw=randrw\nio_size=500k",
		"rw=randwrite\nnorandommap\nbsrange=4k-16k\nio_size=500k",
	} {
		dir := t.TempDir()
		common := "\nfilename=@/data\nsize=1m\nverify=md5\n" + options + "\n"
		if _, said := runSaying(t, dir, "[w]"+common+"do_verify=0\n"); strings.Contains(said, "verify:") {
			t.Fatal(said)
		}
		report, said := runSaying(t, dir, "[v]"+common+"verify_only\n")
		row := &report.Rows[0]
		if row.Err != nil || row.Account.MismatchCount > 0 || row.Directions[interval.Read].Operations == 0 {
			t.Errorf("%s: %v, %d wrong, %d read\n%s", options, row.Err, row.Account.MismatchCount, row.Directions[interval.Read].Operations, said)
		}
	}
}

// What a job wrote in part is found by one that reads it in the same order.
func TestReadsGoWhereWritesWent(t *testing.T) {
	dir := t.TempDir()
	common := "\nfilename=@/data\nsize=1m\nverify=md5\nio_size=500k\nbsrange=4k-16k\n"
	runSaying(t, dir, "[w]"+common+"rw=randwrite\ndo_verify=0\n")
	report, said := runSaying(t, dir, "[r]"+common+"rw=randread\n")
	if row := &report.Rows[0]; row.Err != nil || row.Account.MismatchCount > 0 {
		t.Errorf("%v\n%s", row.Err, said)
	}
}

// Every pass over a file reads it from the device: what is in the page cache of an earlier one is dropped, unless
// invalidate=0 leaves it there. Bytes are those that the kernel says this process had read.
func TestEachPassReadsTheDevice(t *testing.T) {
	const size, loops, all = 8 << 20, 3, -1
	for options, want := range map[string]int64{
		"rw=randread\nloops=3":                             loops * size,
		"rw=read\nbs=64k\nloops=3":                         loops * size,
		"rw=randread\nnorandommap\nbs=64k\nio_size=24m":    2 * size, // a part of the blocks comes twice within a pass
		"rw=read\nbs=64k\nloops=3\nioengine=mmap":          loops * size,
		"rw=read\nbs=64k\nloops=3\nioengine=libaio":        loops * size,
		"rw=randread\nloops=3\nbs=16k\ninvalidate=0":       0,
		"rw=randread\nbs=64k\nruntime=1\ntime_based":       all,
		"rw=read\nbs=1m\nruntime=1\ntime_based\niodepth=4": all,
		"rw=randread\nbs=64k\nloops=3\npre_read=1":         0,
	} {
		dir := t.TempDir()
		job := "[j]\nfilename=@/data\nsize=8m\n"
		runSaying(t, dir, job+"rw=write\nbs=1m\nend_fsync=1\n")
		before := bytesFromDevices(t)
		report, said := runSaying(t, dir, job+options+"\n")
		got := bytesFromDevices(t) - before
		if err := report.Rows[0].Err; err != nil {
			t.Fatalf("%s: %v\n%s", options, err, said)
		}
		if want == all { // as many passes as the machine has time for
			if want = int64(report.Rows[0].Directions[interval.Read].Bytes); want < 2*size {
				t.Logf("%s: undecided: %d KiB were read in its time, less than two passes", options, want>>10)
			}
		}
		cached := want == 0
		if cached && got > 2*size || !cached && got < want*9/10 {
			t.Errorf("%s: %d KiB were read from the device, want %d", options, got>>10, want>>10)
		}
	}
}

// bytesFromDevices returns what the kernel has read from devices for this process.
func bytesFromDevices(t *testing.T) (n int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "read_bytes: %d", &n); err == nil {
			return n
		}
	}
	t.Fatalf("no read_bytes in %s", text)
	return 0
}

// Jobs after a stonewall do not measure what earlier jobs left in the page cache.
func TestLaterPhasesReadTheDevice(t *testing.T) {
	dir := t.TempDir()
	before := bytesFromDevices(t)
	runSaying(t, dir, "[w]\nfilename=@/data\nsize=8m\nrw=write\nbs=1m\n[r]\nstonewall\nfilename=@/data\nsize=8m\nrw=read\nbs=1m\n")
	if got := bytesFromDevices(t) - before; got < 8<<20*9/10 {
		t.Errorf("%d bytes were read from the device", got)
	}
}

// A file without space of its own is as long as what was written to it, as in fio.
func TestFilesGrowWithWhatIsWritten(t *testing.T) {
	text := "[j]\nfilename=@/data\nrw=write\nbs=4k\nsize=1m\nfallocate=none\nnumber_ios=10\n"
	for who, run := range map[string]func(dir string){
		"bragg": func(dir string) { runSaying(t, dir, text) },
		"fio": func(dir string) {
			if out, err := tryFio(t, dir, text); err != nil {
				t.Fatal(out)
			}
		},
	} {
		dir := t.TempDir()
		run(dir)
		if info, err := os.Stat(dir + "/data"); err != nil || info.Size() != 40<<10 {
			t.Errorf("%s: %v, %v", who, info, err)
		}
	}
}

// A job that leaves its file in the page cache says so.
func TestSaysWhatIsReadFromThePageCache(t *testing.T) {
	for options, want := range map[string]bool{"invalidate=0": true, "pre_read=1": true, "invalidate=0\ndirect=1": false, "": false} {
		dir := t.TempDir()
		_, said := runSaying(t, dir, "[j]\nfilename=@/data\nsize=64k\nrw=read\n"+options+"\n")
		if got := strings.Contains(said, "page cache"); got != want {
			t.Errorf("%s: %q", options, said)
		}
	}
}
