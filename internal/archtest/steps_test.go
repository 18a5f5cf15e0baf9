package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/step"
	"github.com/braggdev/bragg/internal/testreq"
)

// knowSteps are the places that may know steps by their names: their list, the language, in which some arguments hold steps and files,
// and made-up runs for tests.
var knowSteps = []string{"internal/step/", "internal/scenario/", "internal/result/resulttest/"}

// TestStepsSayWhatTheyDo: nothing hangs on the name of a step, as in call.Name == "test.Wait" or HasPrefix(name, "cluster."). What a
// step does comes from its Kind and Effect, and from plan and events afterwards. Sentences for readers may name steps.
func TestStepsSayWhatTheyDo(t *testing.T) {
	var names []string
	for _, k := range step.All() {
		noun, _, _ := strings.Cut(k.Name, ".")
		names = append(names, k.Name, noun+".")
	}
	root := testreq.RepositoryRoot(t)
	files := token.NewFileSet()
	for _, path := range goFiles(t) {
		place, _ := filepath.Rel(root, path)
		place = filepath.ToSlash(place)
		if strings.HasSuffix(path, "_test.go") || slices.ContainsFunc(knowSteps, func(p string) bool { return strings.HasPrefix(place, p) }) {
			continue
		}
		tree, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && slices.Contains(names, text) {
					t.Errorf("%s: the name %q of a step", files.Position(literal.Pos()), text)
				}
			}
			return true
		})
	}
}
