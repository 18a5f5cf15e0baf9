package archtest

import (
	"go/ast"
	"testing"
)

// mayDistrust are the files of the product that may switch off a check of certificates or host keys, and why.
var mayDistrust = map[string]string{
	"internal/trust/trust.go":   "agents have no names of hosts: it verifies their certificates by the run's authority and their VM",
	"internal/trust/service.go": "BMCs and other management services sign their own certificates: it compares fingerprints, and obeys `tls: unverified`, which reports show",
}

// Checks of certificates or host keys are skipped in one place that reviewers know.
func TestNobodySkipsVerification(t *testing.T) {
	skips := map[string]bool{"InsecureSkipVerify": true, "InsecureIgnoreHostKey": true}
	used := map[string]bool{}
	tree := parse(t)
	for _, f := range tree.Files {
		if f.Test {
			continue
		}
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok && skips[name.Name] {
				used[f.Path] = true
				if mayDistrust[f.Path] == "" {
					t.Errorf("%s: %s", tree.Position.Position(name.Pos()), name.Name)
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
