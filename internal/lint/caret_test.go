package lint_test

import (
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/braggdev/bragg/internal/lint"
	"github.com/braggdev/bragg/internal/scenario"
)

// TestCaretsUnderlineWords: the subject of a finding is underlined completely, in the document and in job files.
func TestCaretsUnderlineWords(t *testing.T) {
	for example, want := range map[string]string{
		"workload-unused": "Spare", "read-without-data": "workload.Start", "estimated-runtime": "estimated_runtime",
		"plain-password": "remote_pass", "expect-window": "no such window", "job-file": "sideways", "description-disagrees": "Wait",
	} {
		fsys := fstest.MapFS{"test.yml": {Data: readFile(t, filepath.Join("testdata", example+".yml"))}}
		for name, content := range files {
			fsys[name] = &fstest.MapFile{Data: []byte(content)}
		}
		sc, err := scenario.Load(t.Context(), scenario.Source{FS: fsys, Name: "example", Trusted: true}, scenario.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var marked []string
		for _, f := range lint.Check(sc, catalog) {
			d := lint.Diagnostic(f, sc)
			if from := d.Pos.Column - 1; d.Source != "" && from >= 0 && from+d.Width <= len(d.Source) {
				marked = append(marked, d.Source[from:from+d.Width])
			}
		}
		found := false
		for _, m := range marked {
			found = found || m == want
		}
		if !found {
			t.Errorf("%s: %q is not underlined, but %q", example, want, marked)
		}
	}
}
