package iojob_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// syncFolder tells the process that is traced where its files are.
const syncFolder = "BRAGG_TEST_SYNCFS_FOLDER"

// end_syncfs flushes the file system of all files that were written once, after their writes, and nothing else.
func TestEndSyncFS(t *testing.T) {
	if dir := os.Getenv(syncFolder); dir != "" {
		report, err := runLocal(t, dir, "[global]\nend_syncfs=1\nsize=64k\nioengine=psync\ndirectory=@\n[w]\nrw=write\nnrfiles=3\n[r]\nrw=read\ncreate_fsync=0\nstonewall\n")
		if err != nil || report.Rows[0].Err != nil || report.Rows[1].Err != nil {
			t.Errorf("%v", err)
		}
		return
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "strace.log")
	cmd := exec.CommandContext(t.Context(), testreq.Program(t, "strace"), "-f", "-y", "-e", "trace=syncfs,fsync,pwrite64", "-o", log,
		os.Args[0], "-test.run=^TestEndSyncFS$")
	cmd.Env = append(os.Environ(), syncFolder+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	all := string(text)
	if n := strings.Count(all, "syncfs("); n != 1 || strings.LastIndex(all, "syncfs(") < strings.LastIndex(all, "pwrite64(") {
		t.Errorf("%d calls of syncfs(2), want one behind the writes:\n%s", n, all)
	}
	if strings.Contains(all, "fsync(") {
		t.Errorf("a file was flushed by itself:\n%s", all)
	}
}
