//go:build linux

package iojob_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/testreq"
)

// Folders are made, looked up and deleted like files; fio 3.33 does not have these engines.
func TestNamesOfFolders(t *testing.T) {
	dir := t.TempDir()
	const job = "[global]\ndirectory=@/deep\nnrfiles=20\nfilesize=4k\n[j]\nioengine="
	for _, c := range []struct {
		engine string
		left   int
	}{{"dircreate", 20}, {"dirstat", 20}, {"dirdelete", 0}} {
		if c.engine == "dirdelete" {
			if _, err := runLocal(t, dir, job+c.engine+"\n"); err == nil || !strings.Contains(err.Error(), "was there before") {
				t.Errorf("folders that were there before: %v", err)
			}
			if err := os.RemoveAll(filepath.Join(dir, "deep")); err != nil {
				t.Fatal(err)
			}
		}
		report, err := runLocal(t, dir, job+c.engine+"\n")
		if err != nil {
			t.Fatal(err)
		}
		row := &report.Rows[0]
		read := &row.Directions[interval.Read]
		if row.Err != nil || read.Operations != 20 || read.Bytes != 0 || read.Service.Count() != 20 || read.Service.Min() == 0 {
			t.Errorf("%s: %v, %d operations of %d bytes, %d latencies", c.engine, row.Err, read.Operations, read.Bytes, read.Service.Count())
		}
		folders, err := os.ReadDir(filepath.Join(dir, "deep"))
		if err != nil || len(folders) != c.left {
			t.Errorf("%s left %d folders (%v), want %d", c.engine, len(folders), err, c.left)
		}
		for _, f := range folders {
			if !f.IsDir() {
				t.Errorf("%s made %s, which is not a directory", c.engine, f.Name())
			}
		}
	}
	report, err := runLocal(t, dir, job+"dircreate\n")
	if err != nil || report.Rows[0].Err != nil {
		t.Errorf("%v", err)
	}
	if _, err = runLocal(t, dir, job+"dircreate\n"); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("folders that are there already: %v", err)
	}
}

// callJobs are jobs of engines that change what files occupy.
var callJobs = []string{
	"rw=write\nioengine=falloc\nbs=64k\nsize=1m",
	"rw=randwrite\nioengine=falloc\nbs=4k\nsize=256k\nio_size=64k",
	"rw=read\nioengine=falloc\nbs=64k\nsize=1m",
	"rw=write\nioengine=ftruncate\nbs=64k\nsize=1m",
	"rw=write\nioengine=ftruncate\nbs=4k\nsize=64k\nnumber_ios=5",
}

// The same operations are counted as in fio, and leave a file of the same length that occupies as much.
func TestCallsAreLikeFios(t *testing.T) {
	for _, options := range callJobs {
		theirs, ours := t.TempDir(), t.TempDir()
		text := "[j]\nfilename=@/file\nfallocate=none\n" + options + "\n"
		var doc struct {
			Jobs []map[string]json.RawMessage `json:"jobs"`
		}
		if err := json.Unmarshal(fio(t, theirs, strings.ReplaceAll(text, "@", theirs), "--output-format=json"), &doc); err != nil {
			t.Fatal(err)
		}
		report, err := runLocal(t, ours, text)
		if err != nil {
			t.Fatalf("%s: %v", options, err)
		}
		row := &report.Rows[0]
		if row.Err != nil {
			t.Errorf("%s: %v", options, row.Err)
		}
		for d, name := range []string{"read", "write", "trim"} {
			var dir struct {
				Total uint64 `json:"total_ios"`
			}
			if err := json.Unmarshal(doc.Jobs[0][name], &dir); err != nil {
				t.Fatal(err)
			}
			if n := row.Directions[d].Operations; n != dir.Total {
				t.Errorf("%q: %d operations of direction %s, fio has %d", options, n, name, dir.Total)
			}
		}
		length, bytes := occupied(t, filepath.Join(ours, "file"))
		wantLength, wantBytes := occupied(t, filepath.Join(theirs, "file"))
		if strings.Contains(options, "randwrite\nioengine=falloc") {
			length = wantLength // it ends with the last block that each drew
		}
		// The file system may need a block of its own for where the others are.
		const slack = 8192
		if length != wantLength || bytes > wantBytes+slack || wantBytes > bytes+slack {
			t.Errorf("%q: the file has %d bytes and occupies %d, that of fio %d and %d", options, length, bytes, wantLength, wantBytes)
		}
	}
}

func occupied(t *testing.T, path string) (length, bytes int64) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fsync(fd); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	return st.Size, st.Blocks * 512
}

// A full disk is an error of the job.
func TestAllocationOnFullDisk(t *testing.T) {
	testreq.Root(t)
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m", "none", dir).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	report, err := runLocal(t, dir, "[j]\nfilename=@/file\nsize=64m\nbs=1m\nrw=write\nioengine=falloc\n")
	if err != nil {
		t.Fatal(err)
	}
	if row := &report.Rows[0]; row.Err == nil || !strings.Contains(row.Err.Error(), "no space left") {
		t.Errorf("%v", row.Err)
	}
}

// A job that computes takes its share of a CPU, does no I/O and ends with the others.
func TestComputing(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := t.TempDir()
	for _, mode := range []string{"noop", "qsort"} {
		report, err := runLocal(t, dir, "[io]\nioengine=null\nsize=1g\nrate_iops=1000\nruntime=2\ntime_based\n[burn]\nioengine=cpuio\ncpuload=40\ncpuchunks=20000\nexit_on_io_done=1\ncpumode="+mode+"\n")
		if err != nil {
			t.Fatal(err)
		}
		row := &report.Rows[1]
		for d := range row.Directions {
			if row.Directions[d].Operations != 0 {
				t.Errorf("%s: it did I/O", mode)
			}
		}
		// Others use the machine too, so that the share may be smaller, and never larger by more than a cycle.
		used := time.Duration(row.Account.UserNanos + row.Account.SystemNanos)
		if row.Err != nil || row.Runtime < 1600*time.Millisecond || used < row.Runtime/20 || used > row.Runtime*6/10 {
			t.Errorf("%s: %v, %v of the processor in %v, want 40 %%", mode, row.Err, used, row.Runtime)
		}
	}
	// A cycle of ten seconds, and one of an hour, end with the job.
	for _, long := range []string{"cpuload=1\ncpuchunks=100000", "cpuload=100\ncpuchunks=2000000000", "cpuload=1\ncpuchunks=36000000"} {
		report, err := runLocal(t, dir, "[burn]\nioengine=cpuio\nruntime=1\n"+long+"\n")
		if err != nil || report.Rows[0].Err != nil || report.Rows[0].Runtime > 5*time.Second {
			t.Errorf("%s: %v, %v after %v", long, err, report.Rows[0].Err, report.Rows[0].Runtime)
		}
	}
	if _, err := runLocal(t, dir, "[burn]\nioengine=cpuio\nruntime=1\n"); err == nil || !strings.Contains(err.Error(), "cpuload") {
		t.Errorf("cpuio without cpuload: %v", err)
	}
	if _, list := fiojob.Parse("job.fio", "[a]\nioengine=ftruncate\nfilename=x\n", fiojob.Options{}); !list.HasErrors() {
		t.Error("ftruncate is not refused where jobs are not of this machine")
	}
}
