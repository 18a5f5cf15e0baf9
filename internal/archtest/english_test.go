package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// phrase is a turn of phrase that documentation, messages and comments do not use, and what to write instead.
type phrase struct {
	pattern *regexp.Regexp
	instead string
	fine    *regexp.Regexp // matches that are plain English; may be nil
}

func banned(pattern, instead string) phrase {
	return phrase{pattern: regexp.MustCompile(`(?i)` + pattern), instead: instead}
}

// phrases lists translated turns of phrase. "X stands for Y" is not in it: that is what abbreviations do.
var phrases = []phrase{
	banned(`\b(nobody|somebody|whoever|everybody)\b`, `the agent by name: "no run", "another process", "the caller", "readers"`),
	banned(`\banew\b`, `"again", or "new"`),
	banned(`\b(broken|breaks?|broke|breaking) off\b`, `"cancelled", "stopped"`),
	banned(`\b(let|lets|letting) go of\b`, `"releases"`),
	banned(`\btakes? nothing\b`, `"accepts no writes", "reads nothing"`),
	banned(`\b(is|are|was|were|be|been) told\b`, `"receives", "is notified", "is reported"`),
	banned(`\btells whether\b`, `"reports whether"`),
	banned(`\b(is|are|was|were|be|been) asked\b`, `"is polled", "is requested", "is queried"`),
	banned(`\bwhat stands\b|\bstands (in|on|at|there|beside|behind|before)\b`, `"is in", "follows", "precedes"`),
	banned(`\b(mend|mends|mended)\b`, `"fix"`),
	banned(`\bleft alone\b`, `"skipped", "unchanged"`),
	banned(`\bspeaks? against\b`, `"blocks", "rules out"`),
	banned(`\ba defect of (ours|bragg)\b`, `"internal error", "bug"`),
	{
		pattern: regexp.MustCompile(`(?i)\b[a-z]+ (is|are|was|were) no [a-z]+`),
		instead: `"is not a", "invalid …"`,
		fine:    regexp.MustCompile(`(?i)^(there|if|where|when) |no (longer|more|less|greater|larger|smaller|higher|lower|later|earlier|better|worse|slower|faster|fewer)$`),
	},
}

// dirty are directories that still have such phrases, with how many at most. A ceiling only goes down: lower it, or remove
// the line, with the phrases.
var dirty = map[string]int{
	"docs/decisions":    2,
	"docs/formats":      1,
	"docs/guides":       2,
	"internal/agent":    14,
	"internal/archtest": 6,
	"internal/audit":    1,
	"internal/cli":      26,
	"internal/control":  1,
	"internal/diag":     1,
	"internal/evaluate": 1,
	"internal/fio":      1,
	"internal/fleet":    4,
	"internal/guest":    1,
	"internal/hostvm":   1,
	"internal/lab":      1,
	"internal/lease":    1,
	"internal/load":     71,
	"internal/metric":   4,
	"internal/plan":     1,
	"internal/planner":  3,
	"internal/report":   19,
	"internal/result":   1,
	"internal/run":      16,
	"internal/session":  9,
	"internal/step":     3,
	"internal/target":   5,
	"internal/textio":   2,
}

const dirtySlackMax = 40 // a ceiling further above the count is to be lowered

// uncheckedPlaces hold text of others, or this list.
var uncheckedPlaces = []string{".git", "build", "bin", "internal/report/assets/uplot", "internal/archtest/english_test.go"}

func TestPlainEnglish(t *testing.T) {
	root := testreq.RepositoryRoot(t)
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case slices.Contains(uncheckedPlaces, name) && e.IsDir():
			return filepath.SkipDir
		case e.IsDir() || slices.Contains(uncheckedPlaces, name):
			return nil
		case !slices.Contains([]string{".go", ".md", ".html", ".txtar"}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		area := areaOf(name)
		found[area] = append(found[area], translated(name, string(text))...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for area, list := range found {
		switch ceiling := dirty[area]; {
		case len(list) > ceiling:
			t.Errorf("%s has %d translated phrases, at most %d are allowed:\n  %s", area, len(list), ceiling, strings.Join(list, "\n  "))
		case ceiling-len(list) > dirtySlackMax || ceiling > 0 && len(list) == 0:
			t.Errorf("%s has %d translated phrases: lower its ceiling %d", area, len(list), ceiling)
		}
	}
	for area := range dirty {
		if _, ok := found[area]; !ok {
			t.Errorf("%s has a ceiling and no files", area)
		}
	}
}

// areaOf is the package family below internal, another directory of the first level, or "." for the root's own files.
func areaOf(name string) string {
	parts := strings.Split(name, "/")
	switch {
	case len(parts) == 1:
		return "."
	case parts[0] == "internal" && len(parts) > 2, parts[0] == "docs" && len(parts) > 2:
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// translated lists the phrases of a text with their lines and what to write instead.
func translated(name, text string) []string {
	var list []string
	for i, line := range strings.Split(text, "\n") {
		for _, p := range phrases {
			for _, match := range p.pattern.FindAllString(line, -1) {
				if p.fine != nil && p.fine.MatchString(match) {
					continue
				}
				list = append(list, fmt.Sprintf("%s:%d: %q: write %s", name, i+1, match, p.instead))
			}
		}
	}
	return list
}

func TestTranslatedPhrases(t *testing.T) {
	for text, want := range map[string]int{
		"there is no run X": 0, "no such file": 0, "it is no longer there": 0, "the median is no lower": 0, "PR stands for pull request": 0,
		"it is no regular file": 1, "nobody reads it": 1, "the run is told to stop": 1, "Mend the cause": 1,
	} {
		if got := translated("x", text); len(got) != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
