package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// TestExamplesSetVariables: examples of help and documentation set variables that their built-in scenario has.
func TestExamplesSetVariables(t *testing.T) {
	t.Parallel()
	root := testreq.RepositoryRoot(t)
	pages, err := filepath.Glob(filepath.Join(root, "docs", "guides", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, command := range []string{"run", "plan"} {
		_, help, _ := inProcess(t, command, "--help")
		texts = append(texts, help)
	}
	_, list, _ := inProcess(t, "scenarios")
	example, set := regexp.MustCompile(`bragg (?:run|plan) (\w+)([^\n|]*)`), regexp.MustCompile(`--(?:against-)?set (\w+)=`)
	checked := 0
	for _, found := range example.FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
		if !strings.Contains(list, "\n"+found[1]+" ") {
			continue
		}
		_, described, _ := inProcess(t, "scenarios", found[1])
		variables := strings.Split(described, "\n")
		for _, of := range set.FindAllStringSubmatch(found[2], -1) {
			if checked++; !slices.ContainsFunc(variables, func(line string) bool { return strings.HasPrefix(line, of[1]+" ") }) {
				t.Errorf("%q: the scenario has no variable %s", found[0], of[1])
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d examples set a variable", checked)
	}
}
