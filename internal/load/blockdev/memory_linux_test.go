package blockdev

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/testreq"
)

func TestInMemory(t *testing.T) {
	for folder, want := range map[string]string{"/dev/shm": "tmpfs", "/proc": ""} {
		var fs unix.Statfs_t
		if err := unix.Statfs(folder, &fs); err != nil || folder == "/dev/shm" && fs.Type != unix.TMPFS_MAGIC {
			testreq.Skip(t, folder+" is another file system here")
		}
		path := filepath.Join(folder, "version")
		if folder == "/dev/shm" {
			f, err := os.CreateTemp(folder, "bragg-test-*")
			if err != nil {
				testreq.Skip(t, err.Error())
			}
			path = f.Name()
			defer os.Remove(path)
			_ = f.Close()
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := InMemory(f); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		_ = f.Close()
		if got := InMemory(f); got != "" {
			t.Errorf("a closed file: %q", got)
		}
	}
}
