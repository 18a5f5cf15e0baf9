package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/step"
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
	tree := parse(t)
	for _, f := range tree.Files {
		if f.Test || slices.ContainsFunc(knowSteps, func(p string) bool { return strings.HasPrefix(f.Path, p) }) {
			continue
		}
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && slices.Contains(names, text) {
					t.Errorf("%s: the name %q of a step", tree.Position.Position(literal.Pos()), text)
				}
			}
			return true
		})
	}
}
