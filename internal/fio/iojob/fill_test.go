package iojob_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/testreq"
)

// A full disk ends a job with fill_device, without an error and with everything written that fits, and is one without it.
func TestFillDevice(t *testing.T) {
	testreq.Root(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		testreq.Skip(t, "no tmpfs: "+err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	for options, want := range map[string]uint64{
		"fill_device=1": 32, "fill_device=1\nsize=8m": 32, "fill_device=1\nsize=1m": 16, "fill_device=1\niodepth=8\nioengine=libaio": 32,
	} {
		_, file := parse(t, dir, "[a]\nfilename=@/f\nrw=write\nbs=64k\nfallocate=none\n"+options+"\n")
		report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
		if err != nil {
			t.Fatal(err)
		}
		row := &report.Rows[0]
		if got := row.Directions[1].Operations; got != want || row.Err != nil || len(row.Directions[1].Errors) > 0 {
			t.Errorf("%q: %d writes, want %d; %v, %v", options, got, want, row.Err, row.Directions[1].Errors)
		}
		if err := os.Remove(filepath.Join(dir, "f")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCreateOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, file := parse(t, dir, "[a]\ndirectory=@\nrw=read\nsize=64k\ncreate_only=1\n[b]\ndirectory=@\nsize=64k\npre_read=1\n")
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint64{0, 16} {
		if got := report.Rows[i].Directions[0].Operations; got != want || report.Rows[i].Err != nil {
			t.Errorf("row %d: %d reads, want %d; %v", i, got, want, report.Rows[i].Err)
		}
	}
	for _, name := range []string{"a.0.0", "b.0.0"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() != 64<<10 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// smallDisk is a file system of 1 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	testreq.Root(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		testreq.Skip(t, "no tmpfs: "+err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// continue_on_error outlives a full disk, and says what it cost; fio ends there, because it goes on after EIO and EILSEQ only.
func TestErrorsOutlived(t *testing.T) {
	dir := smallDisk(t)
	text := "[a]\nfilename=@/f\nrw=write\nbs=64k\nsize=2m\nfallocate=none\ncontinue_on_error=write\n"
	row := &run(t, dir, text).Rows[0]
	if w := &row.Directions[1]; row.Err != nil || w.Operations != 16 || w.Errors["ENOSPC"] != 16 {
		t.Errorf("%d writes, errors %v, %v", w.Operations, w.Errors, row.Err)
	}
	if testing.Short() {
		t.Skip("fio writes too")
	}
	if err := os.Remove(filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if _, err := runFio(t, other, strings.ReplaceAll(text, "@", dir)); err == nil {
		t.Error("fio outlives it too")
	}
}
