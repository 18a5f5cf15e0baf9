package control

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFileSystemsWithoutModes: FAT, NTFS and shares show one mode for everything, and refuse or forget another. That all may write
// there says nothing about who made the folder. Elsewhere the mode is what it was after the look.
func TestFileSystemsWithoutModes(t *testing.T) {
	for name, c := range map[string]struct {
		chmod func(string, fs.FileMode) error
		want  bool
	}{
		"keeps":   {os.Chmod, true},
		"forgets": {func(string, fs.FileMode) error { return nil }, false},
		"refuses": {func(string, fs.FileMode) error { return syscall.EPERM }, false},
	} {
		dir := filepath.Join(t.TempDir(), controlName)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := keepsModes(dir, info, c.chmod); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if now, err := os.Lstat(dir); err != nil || now.Mode() != info.Mode() {
			t.Errorf("%s: afterwards %v, %v", name, now, err)
		}
	}
}

// TestStepWithoutCall: a journal that was made by others may have a step that no program writes.
func TestStepWithoutCall(t *testing.T) {
	runs := t.TempDir()
	if err := makeControl(runs); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for i, r := range []record{
		{Kind: recordHeader, Header: &Header{Format: journalFormat, Run: "run-1"}},
		{Kind: recordIntent, Thing: &Thing{Kind: ThingStep, Step: 3}},
	} {
		r.Seq = uint64(i + 1)
		line, err := encodeRecord(r)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, line...)
	}
	if err := os.WriteFile(journalPath(runs, "run-1"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if left, err := RecoverRun(runs, "run-1"); err == nil || !strings.Contains(err.Error(), "record 2 has a step without its call") {
		t.Errorf("%v, %v", left, err)
	}
}
