package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// mayDistrust are the files of the product that may switch off a check of certificates or host keys, and why.
var mayDistrust = map[string]string{
	"internal/trust/trust.go":   "agents have no names of hosts: it verifies their certificates by the run's authority and their VM",
	"internal/trust/service.go": "BMCs and other management services sign their own certificates: it compares fingerprints, and obeys `tls: unverified`, which reports show",
}

// Checks of certificates or host keys are skipped in one place that reviewers know.
func TestNobodySkipsVerification(t *testing.T) {
	skips := map[string]bool{"InsecureSkipVerify": true, "InsecureIgnoreHostKey": true}
	files := token.NewFileSet()
	used := map[string]bool{}
	for _, path := range goFiles(t) {
		relative, _ := filepath.Rel(testreq.RepositoryRoot(t), path)
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok && skips[name.Name] {
				used[filepath.ToSlash(relative)] = true
				if mayDistrust[filepath.ToSlash(relative)] == "" {
					t.Errorf("%s: %s", files.Position(name.Pos()), name.Name)
				}
			}
			return true
		})
	}
	for path := range mayDistrust {
		if !used[path] {
			t.Errorf("%s no longer skips anything: take it from the list", path)
		}
	}
}
