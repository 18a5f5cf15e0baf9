package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// pageLink is a link of a page to a file, without its place there.
var pageLink = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`)

// TestPagesAreLinked: each page of the documentation is found from its index, and links lead to files that are there.
func TestPagesAreLinked(t *testing.T) {
	root := testreq.RepositoryRoot(t)
	docs := filepath.Join(root, "docs")
	indexed := map[string]bool{filepath.Join(docs, "README.md"): true}
	for _, index := range []string{"README.md", filepath.Join("decisions", "README.md")} {
		for _, target := range linksOf(t, filepath.Join(docs, index)) {
			indexed[target] = true
		}
	}
	pages := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "CHANGELOG.md")}
	err := filepath.WalkDir(docs, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
			if !indexed[path] {
				t.Errorf("%s is in no index", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		for _, target := range linksOf(t, page) {
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, target)
			}
		}
	}
}

func linksOf(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range pageLink.FindAllStringSubmatch(string(text), -1) {
		targets = append(targets, filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1])))
	}
	return targets
}
