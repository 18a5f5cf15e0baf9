package loadtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Fills keeps what a prefill made beside the disks of a workload, so that other tests of the package begin with copies of it: making and
// starting an empty server takes seconds, and a copy tens of milliseconds. TestMain removes them at its end.
type Fills struct {
	mu     sync.Mutex
	folder string
	made   map[string]string // folder by kind
}

// Fill puts data of a kind into an empty folder. The first test makes it, with its own disks in the folder.
func (f *Fills) Fill(t testing.TB, kind, folder string, fill func()) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if kept := f.made[kind]; kept != "" {
		copyFolder(t, kept, folder)
		return
	}
	fill()
	if f.folder == "" {
		created, err := os.MkdirTemp("", "bragg-fills-")
		if err != nil {
			t.Fatal(err)
		}
		f.folder, f.made = created, map[string]string{}
	}
	kept, err := os.MkdirTemp(f.folder, "")
	if err != nil {
		t.Fatal(err)
	}
	copyFolder(t, folder, kept)
	f.made[kind] = kept
}

// Remove removes all that is kept.
func (f *Fills) Remove() { _ = os.RemoveAll(f.folder) }

// copyFolder copies what is in a folder, with owners and permissions, which servers check.
func copyFolder(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", filepath.Clean(from)+"/.", to).CombinedOutput(); err != nil {
		t.Fatalf("copy a prefill: %v\n%s", err, out)
	}
}
