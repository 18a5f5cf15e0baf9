package fiojob_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fiojob"
	"github.com/braggdev/bragg/internal/testreq"
)

// TestDocumented keeps docs/formats/jobfile.md complete: every native option stands in its table, and the lists of the
// other classes are those of the code.
func TestDocumented(t *testing.T) {
	path := filepath.Join(testreq.RepositoryRoot(t), "docs", "formats", "jobfile.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	written, _, found := strings.Cut(string(text), "<!-- options:")
	if !found {
		t.Fatal("the page has no place for the lists of options")
	}
	_, natives, _ := strings.Cut(written, "## Native options")
	lists := map[fiojob.Class]map[string][]string{}
	for _, name := range fiojob.OptionNames() {
		class, why := fiojob.ClassOf(name)
		switch {
		case fiojob.Canonical(name) != name:
		case class != fiojob.Native:
			if lists[class] == nil {
				lists[class] = map[string][]string{}
			}
			lists[class][why] = append(lists[class][why], name)
		case !strings.Contains(natives, "`"+name+"`"):
			t.Errorf("native option %s is not in the table of %s", name, path)
		}
	}
	want := written + "<!-- options: written by go test ./internal/fiojob -run Documented -update -->\n"
	for _, class := range []fiojob.Class{fiojob.Ignored, fiojob.Delegate, fiojob.Refused} {
		want += fmt.Sprintf("\n## %s\n", strings.ToUpper(string(class[:1]))+string(class[1:]))
		var whys []string
		for why := range lists[class] {
			whys = append(whys, why)
		}
		slices.Sort(whys)
		for _, why := range whys {
			want += fmt.Sprintf("\n%s:\n`%s`\n", strings.ToUpper(why[:1])+why[1:], strings.Join(lists[class][why], "` `"))
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("the lists of %s are not those of the code (rewrite with -update)", path)
	}
}
