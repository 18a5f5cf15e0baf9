package archtest

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// phrase is a turn of phrase that documentation, messages and comments do not use, and what to write instead.
type phrase struct {
	pattern *regexp.Regexp
	needs   []string // in lower case: each match contains one of them; found much faster than a match
	instead string
	fine    *regexp.Regexp // matches that are plain English; may be nil
}

func banned(pattern, instead string) phrase {
	pattern = `(?i)` + pattern
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return phrase{pattern: regexp.MustCompile(pattern), needs: needed(parsed), instead: instead}
}

func (p phrase) except(fine string) phrase {
	p.fine = regexp.MustCompile(fine)
	return p
}

// mayBeIn reports whether a text in lower case may have matches.
func (p phrase) mayBeIn(lower string) bool {
	return slices.ContainsFunc(p.needs, func(part string) bool { return strings.Contains(lower, part) })
}

// needed returns texts in lower case one of which each match contains. An empty text is contained in all.
func needed(e *syntax.Regexp) []string {
	shortest := func(list []string) int {
		return len(slices.MinFunc(list, func(a, b string) int { return cmp.Compare(len(a), len(b)) }))
	}
	switch e.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(e.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return needed(e.Sub[0])
	case syntax.OpConcat:
		best := []string{""}
		for _, part := range e.Sub {
			if list := needed(part); shortest(list) > shortest(best) {
				best = list
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, part := range e.Sub {
			all = append(all, needed(part)...)
		}
		return all
	}
	return []string{""}
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
	banned(`\bof ours\b`, `"of Bragg", "internal"`),
	banned(`\bimitat(es?|ing|ions?)\b|\b(is|are|was|were|only|or) imitated\b`, `"simulated"`),
	banned(`\b(imagined|imaginary)\b`, `"simulated"`),
	banned(`\bbehind its moment\b`, `"start skew"`),
	banned(`\b(goes|go|went) on (beyond|for \d)`, `"extended by"`),
	banned(`\b(hears?|heard) of\b`, `"receives", "learns of", "is notified of"`),
	banned(`\bfor ever\b`, `"forever", "indefinitely"`),
	banned(`\bproves? nothing\b`, `"is not verified", "does not identify"`),
	banned(`\b(means? nothing|is worth nothing|has no worth)\b`, `"is ignored", "has no effect", "cannot be used"`),
	banned(`\bthere and then\b`, `"at that time"`),
	banned(`\bspeaks? with the controller\b`, `"communicates"`),
	banned(`\b[a-z]+ (is|are|was|were) no [a-z]+`, `"is not a", "invalid …"`).
		except(`(?i)^(there|if|where|when) |no (longer|more|less|greater|larger|smaller|higher|lower|later|earlier|better|worse|slower|faster|fewer)$`),
}

// uncheckedPlaces hold text of others, or this list.
var uncheckedPlaces = []string{".git", "build", "bin", "internal/report/page/assets/uplot", "internal/archtest/english_test.go"}

func TestPlainEnglish(t *testing.T) {
	root := testreq.RepositoryRoot(t)
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
		case !slices.Contains([]string{".go", ".md", ".html", ".txtar", ".golden", ".json", ".yml"}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, phrase := range translated(name, string(text)) {
			t.Error(phrase)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// translated lists the phrases of a text with their lines and what to write instead.
func translated(name, text string) []string {
	var list []string
	lower := strings.ToLower(text)
	possible := slices.DeleteFunc(slices.Clone(phrases), func(p phrase) bool { return !p.mayBeIn(lower) })
	if len(possible) == 0 {
		return nil
	}
	for i, line := range strings.Split(text, "\n") {
		lower := strings.ToLower(line)
		for _, p := range possible {
			if !p.mayBeIn(lower) {
				continue
			}
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
	for _, p := range phrases {
		if slices.ContainsFunc(p.needs, func(part string) bool { return len(part) < 3 }) {
			t.Errorf("%v is looked for in nearly every line: its matches need one of %q", p.pattern, p.needs)
		}
	}
}
