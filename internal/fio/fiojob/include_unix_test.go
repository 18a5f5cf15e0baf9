//go:build unix

package fiojob_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// TestPipesAreNotIncluded: opening a pipe without a writer would block forever.
func TestPipesAreNotIncluded(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 1)
	go func() {
		_, list := fiojob.Parse("a.fio", "[global]\ninclude pipe\n[j]\nrw=read\n", fiojob.Options{FS: os.DirFS(dir)})
		done <- list.Err().Error()
	}()
	select {
	case text := <-done:
		if !strings.Contains(text, `include "pipe"`) {
			t.Error(text)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("blocks")
	}
}
