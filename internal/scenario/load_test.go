package scenario_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/testreq"
)

// explain turns an error of Load into what a person would see.
func explain(err error) string {
	var list *diag.ListError
	if !errors.As(err, &list) {
		return err.Error()
	}
	var b strings.Builder
	diag.Render(&b, list.List)
	return b.String()
}

func corpus(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("../../../shared/corpus/xray/*/*/test.yml")
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) == 0 {
		testreq.Skip(t, "the corpus of X-Ray scenarios is not beside the repository")
	}
	return docs
}

func TestCorpusLoads(t *testing.T) {
	for _, doc := range corpus(t) {
		sc, err := scenario.Load(context.Background(), scenario.Source{Path: filepath.Dir(doc)}, scenario.Options{})
		if err != nil {
			t.Errorf("%s", explain(err))
			continue
		}
		if sc.Name == "" || len(sc.Run) == 0 || len(sc.Hash) != 64 {
			t.Errorf("%s: name %q, %d steps, hash %q", doc, sc.Name, len(sc.Run), sc.Hash)
		}
	}
}
