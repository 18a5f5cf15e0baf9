package jinja

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestTheDocumentationNamesFiltersAndTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/scenario.md")
	if err != nil {
		t.Fatal(err)
	}
	for row, names := range map[string][]string{
		"| filters |":   slices.Sorted(maps.Keys(filters())),
		"| tests |":     slices.Sorted(maps.Keys(testTable)),
		"| functions |": slices.Sorted(maps.Keys(globals(nil).names)),
	} {
		_, after, found := strings.Cut(string(page), row)
		line, _, _ := strings.Cut(after, "\n")
		listed := strings.FieldsFunc(line, func(r rune) bool { return r == '`' || r == ' ' || r == '|' || r == ',' })
		if !found || strings.Join(listed, " ") != strings.Join(names, " ") {
			t.Errorf("%s lists %v, and there are %v", row, listed, names)
		}
	}
}
