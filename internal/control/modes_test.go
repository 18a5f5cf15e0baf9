package control

import (
	"io/fs"
	"os"
	"path/filepath"
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
