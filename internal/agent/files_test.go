package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestFilesInPlaceOfDisks(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "disk")
	want := []File{{Path: path, SizeBytes: 1 << 20}}
	if err := makeFiles(want); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) != 1<<20 || bytes.Trim(data, "\x00") != nil {
		t.Fatalf("read %d bytes: %v", len(data), err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := makeFiles(want); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(path); len(data) != 1<<20 || data[0] != 'x' {
		t.Error("a file lost its content")
	}
	if makeFiles([]File{{Path: filepath.Join(dir, "none", "disk"), SizeBytes: 1}}) == nil || makeFiles([]File{{Path: dir, SizeBytes: 1}}) == nil {
		t.Error("made a disk where none can be")
	}
}
