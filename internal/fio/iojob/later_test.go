package iojob_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/testreq"
)

// Jobs build on what those above them make: files and their sizes, and logs.
func TestJobsBuildOnEarlierOnes(t *testing.T) {
	const write = "[w]\nfilename=@/data\nsize=1m\nrw=write\nbs=64k\n"
	for _, c := range []struct {
		name, first, then string
		direction         interval.Direction
		bytes             uint64
	}{
		{"verification", write + "verify=crc32c\ndo_verify=0\n", "filename=@/data\nsize=1m\nrw=write\nbs=64k\nverify=crc32c\nverify_only\n", interval.Read, 1 << 20},
		{"half of a file", write, "filename=@/data\nrw=read\nsize=50%\n", interval.Read, 512 << 10},
		{"a whole file", write, "filename=@/data\nrw=read\n", interval.Read, 1 << 20},
		{"a log", write + "write_iolog=log\n", "read_iolog=log\nreplay_no_stall=1\n", interval.Write, 1 << 20},
		{"a log of a file that the log alone names", write + "write_iolog=log\n", "read_iolog=log\nreplay_no_stall=1\nwrite_iolog=again\n", interval.Write, 1 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := c.first + "[then]\nstonewall\n" + c.then
			dir := t.TempDir()
			if out, err := tryFio(t, dir, text); err != nil {
				t.Errorf("fio: %s", out)
			}
			report, said := runSaying(t, t.TempDir(), text)
			if row := report.Rows[1]; row.Err != nil || row.Directions[c.direction].Bytes != c.bytes || row.Account.MismatchCount > 0 {
				t.Errorf("%v, %d bytes, %d wrong\n%s", row.Err, row.Directions[c.direction].Bytes, row.Account.MismatchCount, said)
			}
		})
	}
}

// What no job above makes is refused before the first one begins.
func TestJobsBuildOnNothing(t *testing.T) {
	for _, text := range []string{
		"[v]\nfilename=@/data\nsize=1m\nrw=write\nverify=crc32c\nverify_only\n[w]\nstonewall\nfilename=@/data\nsize=1m\nrw=write\n",
		"[h]\nfilename=@/data\nsize=50%\nrw=read\n[w]\nstonewall\nfilename=@/data\nsize=1m\nrw=write\n",
		"[r]\nread_iolog=log\n[w]\nstonewall\nfilename=@/data\nsize=1m\nrw=write\nwrite_iolog=log\n",
	} {
		dir := t.TempDir()
		_, file := parse(t, dir, text)
		if _, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Folder: dir}); err == nil || !strings.Contains(err.Error(), "no such file") && !strings.Contains(err.Error(), "that exists") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A job replays what the one above it has written to the same device, which is held once.
func TestReplaysToADeviceThatIsHeld(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	backing := filepath.Join(dir, "backing")
	if err := os.WriteFile(backing, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	device := testreq.Loop(t, backing)
	if err := os.Symlink(device, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{device, filepath.Join(dir, "link")} {
		text := "[w]\nfilename=" + device + "\nrw=write\nbs=64k\nsize=1m\ndirect=1\nwrite_iolog=log\n" +
			"[r]\nstonewall\ndirect=1\nfilename=" + name + "\nread_iolog=log\nreplay_no_stall=1\nreplay_redirect=" + name + "\n"
		_, file := parse(t, dir, text)
		opened := 0
		report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Folder: dir, OpenDevice: func(path string) (*os.File, error) {
			opened++
			f, _, err := blockdev.Open(path, load.Consent{Own: true, SizeBytes: 8 << 20}, os.O_RDWR)
			return f, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range report.Rows {
			if got := row.Directions[interval.Write].Bytes; row.Err != nil || got != 1<<20 {
				t.Errorf("%s: row %d: %v, %d bytes", name, i, row.Err, got)
			}
		}
		if opened != 1 || len(report.Disks) != 1 || report.Disks[0].WriteSectors != 2<<20/512 {
			t.Errorf("%s: opened %d times, %+v", name, opened, report.Disks)
		}
	}
}

// A replay that cannot begin fails its own job only: earlier jobs have their rows, later ones run, and no job waits for it
// forever.
func TestReplayThatCannotBeginFailsAlone(t *testing.T) {
	const write = "[w]\nfilename=@/data\nsize=1m\nrw=write\nbs=64k\nwrite_iolog=log\n"
	backing := filepath.Join(t.TempDir(), "backing")
	if err := os.WriteFile(backing, make([]byte, 256<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	device := testreq.Loop(t, backing)
	for name, c := range map[string]struct{ options, want string }{
		"a file of the kernel": {"replay_redirect=/proc/log\n", "file of the kernel"},
		"a folder":             {"replay_redirect=@/folder\n", "folder"},
		"a device too small":   {"replay_redirect=" + device + "\n", "the log goes up to 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
				t.Fatal(err)
			}
			report, _ := runSaying(t, dir, write+"[r]\nstonewall\nread_iolog=log\n"+c.options+
				"[after]\nstonewall\nwait_for=r\nfilename=@/data\nrw=read\nbs=64k\n")
			if len(report.Rows) != 3 {
				t.Fatalf("%d rows", len(report.Rows))
			}
			if w := report.Rows[0]; w.Err != nil || w.Directions[interval.Write].Bytes != 1<<20 {
				t.Errorf("the writer: %v, %d bytes", w.Err, w.Directions[interval.Write].Bytes)
			}
			if err := report.Rows[1].Err; err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the replay: %v", err)
			}
			if after := report.Rows[2]; after.Err != nil || after.Directions[interval.Read].Bytes != 1<<20 {
				t.Errorf("what follows: %v, %d bytes", after.Err, after.Directions[interval.Read].Bytes)
			}
		})
	}
}

// Files that only a log of this run names are removed and watched as others are.
func TestFilesOfLateReplays(t *testing.T) {
	dir := t.TempDir()
	report, _ := runSaying(t, dir, "[w]\nioengine=null\nsize=1m\nrw=write\nbs=64k\nwrite_iolog=log\n"+
		"[r]\nstonewall\nread_iolog=log\nreplay_no_stall=1\nreplay_redirect=@/late\nunlink=1\n")
	if row := report.Rows[1]; row.Err != nil || row.Directions[interval.Write].Bytes != 1<<20 {
		t.Errorf("%v, %d bytes", row.Err, row.Directions[interval.Write].Bytes)
	}
	if _, err := os.Stat(filepath.Join(dir, "late")); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	if len(report.Disks) == 0 {
		t.Error("the report has no disks")
	}
}
