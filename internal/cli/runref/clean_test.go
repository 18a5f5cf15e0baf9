package runref

import (
	"os"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/console"
)

// TestCleanCommandIsComplete: what is printed works when it is copied, wherever the runs are.
func TestCleanCommandIsComplete(t *testing.T) {
	p := &console.Process{Getenv: func(name string) string { return map[string]string{"HOME": "/home/a"}[name] }}
	for bundle, want := range map[string]string{
		"/home/a/.local/state/bragg/runs/run-1": "bragg clean run-1",
		"/mnt/it's here/run-1":                  `bragg clean run-1 --runs '/mnt/it'\''s here'`,
	} {
		if got := CleanCommand(p, bundle); got != want {
			t.Errorf("%s: %s, want %s", bundle, got, want)
		}
	}
}

// TestRunsFolderOfOthersIsWarnedOf: a user who can write there can replace one run by another.
func TestRunsFolderOfOthersIsWarnedOf(t *testing.T) {
	for mode, warned := range map[os.FileMode]bool{0o700: false, 0o755: false, 0o775: true, 0o757: true, 0o777: true} {
		var stderr strings.Builder
		p := &console.Process{Stderr: &stderr}
		runs := t.TempDir()
		if err := os.Chmod(runs, mode); err != nil {
			t.Fatal(err)
		}
		WarnOfWriters(p, runs)
		if text := stderr.String(); warned != strings.Contains(text, "is writable by other users") ||
			warned != strings.Contains(text, "chmod go-w "+runs) {
			t.Errorf("mode %o: %q", mode, text)
		}
	}
	var stderr strings.Builder
	WarnOfWriters(&console.Process{Stderr: &stderr}, t.TempDir()+"/none")
	if stderr.Len() > 0 {
		t.Errorf("a folder that does not exist: %s", stderr.String())
	}
}
