package iojob_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iojob"
)

// runBoth runs a job file with fio and with bragg, each in a folder of its own that make has filled, and calls check for
// both; fio is left out of short runs.
func runBoth(t *testing.T, text string, make func(dir string), check func(who, dir string)) {
	t.Helper()
	dir := t.TempDir()
	make(dir)
	report := run(t, dir, text)
	for i := range report.Rows {
		if err := report.Rows[i].Err; err != nil {
			t.Errorf("%q: row %d: %v", text, i, err)
		}
	}
	check("bragg", dir)
	if testing.Short() {
		return
	}
	dir = t.TempDir()
	make(dir)
	if out, err := runFio(t, dir, strings.ReplaceAll(text, "@", dir)); err != nil {
		t.Fatalf("fio %q: %v\n%s", text, err, out)
	}
	if err := os.Remove(filepath.Join(dir, "job.fio")); err != nil {
		t.Fatal(err)
	}
	check("fio", dir)
}

func put(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte{0x5a}, size), 0o600); err != nil {
		t.Fatal(err)
	}
}

// changed tells which of the files below a folder are not as put has left them.
func changed(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if len(bytes.Trim(data, "\x5a")) > 0 {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// opendir uses every regular file below its directory, of any name, and nothing outside of it.
func TestOpenDirAsInFio(t *testing.T) {
	names := []string{"-rf", "a", "b/c", "b/d e", "b/x:y"}
	runBoth(t, "[a]\nopendir=@/tree\nrw=write\nbs=4k\n", func(dir string) {
		for _, name := range names {
			put(t, filepath.Join(dir, "tree", name), 64<<10)
		}
		put(t, filepath.Join(dir, "outside"), 64<<10)
	}, func(who, dir string) {
		if got := changed(t, filepath.Join(dir, "tree")); !slices.Equal(got, names) {
			t.Errorf("%s wrote to %q, want %q", who, got, names)
		}
		if got := changed(t, dir); slices.Contains(got, "outside") {
			t.Errorf("%s wrote to %q", who, got)
		}
	})
}

func TestOpenDirFollowsNoLinks(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "tree", "a"), 64<<10)
	put(t, filepath.Join(dir, "outside"), 64<<10)
	for link, target := range map[string]string{"link": "../outside", "folder": "..", "gone": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, "tree", link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "tree", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	report := run(t, dir, "[a]\nopendir=@/tree\nrw=write\nbs=4k\n")
	if got := report.Rows[0].Directions[1].Operations; got != 16 || report.Rows[0].Err != nil {
		t.Errorf("%d writes, want the 16 of one file; %v", got, report.Rows[0].Err)
	}
	if got := changed(t, dir); !slices.Equal(got, []string{"tree/a"}) {
		t.Errorf("changed %q", got)
	}
}

func TestFileAppendAsInFio(t *testing.T) {
	for _, before := range []int{0, 64 << 10} {
		runBoth(t, "[a]\nfilename=@/f\nrw=write\nbs=4k\nsize=32k\nfile_append=1\n", func(dir string) {
			if before > 0 {
				put(t, filepath.Join(dir, "f"), before)
			}
		}, func(who, dir string) {
			data, err := os.ReadFile(filepath.Join(dir, "f"))
			if err != nil || len(data) != before+32<<10 || bytes.Count(data[:before], []byte{0x5a}) != before {
				t.Errorf("%s: of %d bytes became %d, %v", who, before, len(data), err)
			}
		})
	}
}

// allow_file_create=0 protects from a misspelled name that would become a new file. Of several jobs, one may create it.
func TestNoFileIsCreatedAsInFio(t *testing.T) {
	const job = "[a]\nfilename=@/f\nrw=write\nbs=4k\nsize=16k\n"
	dir := t.TempDir()
	_, file := parse(t, dir, job+"allow_file_create=0\n")
	if _, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{}); err == nil || !strings.Contains(err.Error(), "allow_file_create=0 forbids creating it") {
		t.Errorf("a missing file: %v", err)
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("created %v, %v", made, err)
	}
	for _, other := range []string{"allow_file_create=1\n", "allow_file_create=0\n[b]\nfilename=@/f\nrw=read\nsize=16k\n"} {
		if report := run(t, t.TempDir(), job+other); report.Rows[0].Err != nil {
			t.Errorf("%q: %v", other, report.Rows[0].Err)
		}
	}
	put(t, filepath.Join(dir, "f"), 16<<10)
	if report := run(t, dir, job+"allow_file_create=0\n"); report.Rows[0].Err != nil {
		t.Errorf("a file that exists: %v", report.Rows[0].Err)
	}
}

// create_on_open lays nothing out: a file has what was written to it and no more.
func TestCreateOnOpenAsInFio(t *testing.T) {
	for options, want := range map[string]int64{"number_ios=4\ncreate_on_open=1": 16 << 10, "number_ios=4": 1 << 20} {
		runBoth(t, "[a]\ndirectory=@/new\nrw=write\nbs=4k\nsize=1m\n"+options+"\n", func(dir string) {
			if err := os.Mkdir(filepath.Join(dir, "new"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, func(who, dir string) {
			info, err := os.Stat(filepath.Join(dir, "new", "a.0.0"))
			if err != nil || info.Size() != want {
				t.Errorf("%s %q: %v, %v; want %d bytes", who, options, info, err, want)
			}
		})
	}
}

func TestUnlinkAsInFio(t *testing.T) {
	for options, stays := range map[string]bool{"": true, "unlink=1": false, "unlink_each_loop=1": true, "unlink=0\nunlink_each_loop=0": true} {
		runBoth(t, "[a]\nfilename=@/f\nrw=write\nsize=64k\n"+options+"\n", func(string) {}, func(who, dir string) {
			if _, err := os.Stat(filepath.Join(dir, "f")); (err == nil) != stays {
				t.Errorf("%s %q: %v", who, options, err)
			}
		})
	}
}

// What cannot be done is said before anything is made or run.
func TestFilesRefused(t *testing.T) {
	for options, want := range map[string]string{
		"opendir=@/empty":                                                   "no regular file",
		"opendir=@\nunlink=1":                                               "no job made",
		"opendir=@/missing":                                                 "no such file",
		"filename=@/x:@/y\nfile_append=1\nsize=64k":                         "one length",
		"filename=@/x\nfile_append=1":                                       "needs size",
		"filename=@/x\nsize=8k\nunlink_each_loop=1\nloops=2":                "one loop",
		"filename=@/x\nsize=8k\nunlink_each_loop=1\ntime_based\nruntime=1s": "one loop",
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "x"), 4096)
		_, file := parse(t, dir, "[a]\nrw=write\n"+options+"\n")
		_, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", options, err, want)
		}
		if got := changed(t, dir); len(got) > 0 {
			t.Errorf("%q changed %q", options, got)
		}
	}
}

// Options of files have no effect in workloads, or are refused there, but for that of the page cache.
func TestFilesOfWorkloads(t *testing.T) {
	file, list := fiojob.Parse("t", "[a]\nunlink=1\noverwrite=1\ninvalidate=0\nfallocate=none\ncreate_on_open=1\ncreate_fsync=0\n", fiojob.Options{})
	if list.HasErrors() || file.Jobs()[0].Layout != (fiojob.Layout{KeepCache: true}) {
		t.Errorf("%v, %+v", list, file.Jobs()[0].Layout)
	}
	for _, option := range []string{"opendir=/etc", "file_append=1"} {
		if _, list := fiojob.Parse("t", "[a]\n"+option+"\n", fiojob.Options{}); !list.HasErrors() || list[0].Code != "refused-option" {
			t.Errorf("%s: %v", option, list)
		}
	}
}
