package testreq

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// KernelPackage returns the path of a Debian package with a kernel for guests: the one that BRAGG_TEST_KERNEL names, or
// the newest below build/kernel, where `make deps` puts one. It is not installed on this machine.
func KernelPackage(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("BRAGG_TEST_KERNEL"); path != "" {
		return path
	}
	found, err := filepath.Glob(filepath.Join(RepositoryRoot(t), "build", "kernel", "linux-image-[0-9]*_"+runtime.GOARCH+".deb"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		Skip(t, "no kernel for guests: make deps, or BRAGG_TEST_KERNEL=FILE")
	}
	return slices.Max(found)
}
