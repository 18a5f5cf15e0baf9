//go:build unix

package testreq_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// Programs of two packages are not the same file, and what cannot be built says why.
func TestBuild(t *testing.T) {
	var info []os.FileInfo
	for range 2 {
		dir := t.TempDir()
		if err := testreq.Build(dir, "github.com/braggdev/bragg/internal/testreq/changed"); err != nil {
			t.Fatal(err)
		}
		one, err := os.Stat(filepath.Join(dir, "changed"))
		if err != nil {
			t.Fatal(err)
		}
		if one.Mode()&0o100 == 0 {
			t.Errorf("mode %v", one.Mode())
		}
		info = append(info, one)
	}
	if os.SameFile(info[0], info[1]) {
		t.Error("both packages have one file")
	}
	if err := testreq.Build(t.TempDir(), "github.com/braggdev/bragg/internal/nothing"); err == nil || !strings.Contains(err.Error(), "build github.com") {
		t.Errorf("got %v", err)
	}
}
