package scenario_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/scenario"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with a file, or rewrites the file with -update.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, text, want)
	}
}

// Every document under testdata/faults is wrong in many ways, and the golden beside it is what a person sees.
func TestFaultsAreToldTogether(t *testing.T) {
	docs, err := filepath.Glob("testdata/faults/*.yml")
	if err != nil || len(docs) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, doc := range docs {
		_, err := scenario.Load(context.Background(), scenario.Source{Path: doc}, scenario.Options{})
		if err == nil {
			t.Errorf("%s loads without an error", doc)
			continue
		}
		golden(t, strings.TrimSuffix(doc, ".yml")+".golden", explain(err))
	}
}
