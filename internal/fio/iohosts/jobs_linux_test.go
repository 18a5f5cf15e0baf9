package iohosts

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/sshlink"
)

// recorded parses a job file that names files of a folder, as bragg io does with --hosts.
func recorded(t *testing.T, folder, text string) (Jobs, error) {
	t.Helper()
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	jobs := Jobs{Inputs: []fiojob.Input{{Name: "t", Text: text}}}
	parsed := make(chan error, 1)
	go func() {
		_, list := fiojob.ParseAll(jobs.Inputs, jobs.Record(fiojob.Options{Host: true, FS: root.FS()}, sshlink.Host{Name: "h"}))
		parsed <- list.Err()
	}()
	select {
	case err := <-parsed:
		return jobs, err
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for the writer of a named pipe")
		return jobs, nil
	}
}

// A named pipe in the place of a file is refused, and not waited for.
func TestPipesAreNotOpened(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"buffer_pattern='x'", "verify=pattern\nverify_pattern='x'"} {
		dir := t.TempDir()
		pipe := filepath.Join(dir, "x")
		if err := unix.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		// Whatever waits for a writer ends with the test.
		t.Cleanup(func() {
			if fd, err := unix.Open(pipe, unix.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
				_ = unix.Close(fd)
			}
		})
		if _, err := recorded(t, dir, "[a]\nsize=1m\n"+text+"\n"); diag.ExitCode(err) != diag.ExitData {
			t.Errorf("%s: %v", text, err)
		}
	}
}
