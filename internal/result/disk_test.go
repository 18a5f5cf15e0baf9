package result_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/result"
)

// A writer that died in the middle of a file leaves half of it; the next one to clean takes it away, from bundles that
// go on and from sealed ones.
func TestHalfWrittenFilesAreRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	w := create(t, dir)
	if err := errors.Join(w.Attach("logs/a.txt", strings.NewReader("a")), w.Close()); err != nil {
		t.Fatal(err)
	}
	halves := []string{".bragg-1", filepath.Join("attachments", ".bragg-2"), filepath.Join("attachments", "logs", ".bragg-3")}
	leave := func() {
		for _, name := range halves {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone := func(when string) {
		t.Helper()
		for _, name := range halves {
			if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s is left (%v)", when, name, err)
			}
		}
	}
	leave()
	again, err := result.Continue(dir)
	if err != nil {
		t.Fatal(err)
	}
	gone("continued")
	if err := again.Seal(result.Summary{Ended: result.EndedAborted}); err != nil {
		t.Fatal(err)
	}
	leave()
	if err := result.RemoveTemporary(dir); err != nil {
		t.Fatal(err)
	}
	gone("sealed")
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.VerifySeal(); err != nil {
		t.Error(err)
	}
}

// A file is not removed while it is being written, and a failed file does not exist afterwards.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.html")
	full := errors.New("disk full")
	err := result.ReplaceFile(path, func(w io.Writer) error {
		_, _ = w.Write([]byte("half"))
		return full
	})
	if !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	err = result.ReplaceFile(path, func(w io.Writer) error {
		if err := result.RemoveTemporary(dir); err != nil {
			t.Error(err)
		}
		_, err := w.Write([]byte("whole"))
		return err
	})
	text, readErr := os.ReadFile(path)
	if err != nil || readErr != nil || string(text) != "whole" {
		t.Errorf("%q, %v, %v", text, err, readErr)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("files %v", entries)
	}
}

// TestBundlesArePrivate: other users cannot read a bundle, nor files put into its directory; files written elsewhere follow
// their directory.
func TestBundlesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := result.Create(dir, result.Manifest{Run: "run"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Attach("logs/vm.log", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if err := w.Seal(result.Summary{}); err != nil {
		t.Fatal(err)
	}
	if err := result.ReplaceFile(filepath.Join(dir, "report.html"), func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		found++
		return err
	})
	if err != nil || found < 8 {
		t.Errorf("%d files, %v", found, err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(open, "report.html")
	if err := result.ReplaceFile(path, func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("elsewhere a report has mode %v, %v", info.Mode(), err)
	}
}
