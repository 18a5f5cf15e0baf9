package console

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// TestVersionIsThatOfTheChangelog: programs say the release that the newest notes are of.
func TestVersionIsThatOfTheChangelog(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testreq.RepositoryRoot(t), "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## (\S+)`).FindSubmatch(text)
	if newest == nil || string(newest[1]) != release {
		t.Errorf("release %s, and the newest of CHANGELOG.md is %q", release, newest)
	}
	if v := Version(); !strings.HasPrefix(v, release+"-devel") {
		t.Errorf("version without the linker's: %s", v)
	}
}
