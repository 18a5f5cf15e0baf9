package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/braggdev/bragg/internal/durable"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "a"), filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second"} {
		if err := durable.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, statErr := os.Lstat(path)
		if err != nil || statErr != nil || string(got) != text || info.Mode() != 0o640 {
			t.Errorf("%q, %v, %v, %v", got, err, info, statErr)
		}
	}
	if got, _ := os.ReadFile(other); string(got) != "kept" {
		t.Errorf("the link was followed: %q", got)
	}
	if err := os.MkdirAll(filepath.Join(dir, "folder", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(filepath.Join(dir, "folder"), nil, 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}
