package scenario_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/braggdev/bragg/internal/scenario"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(scenario.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	must(t, c.AddResource("scenario.json", doc))
	s, err := c.Compile("scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plain gives a rendered document the form that the validator wants.
func plain(t *testing.T, rendered string) any {
	t.Helper()
	text, err := json.Marshal(scenario.PlainValue(rendered))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheSchemaAcceptsWhatTheParserAccepts(t *testing.T) {
	schema := compileSchema(t)
	docs := append(corpus(t), documents(t, "../../scenarios/*/test.yml")...)
	for _, doc := range docs {
		sc, err := scenario.Load(context.Background(), scenario.Source{Path: doc, Trusted: true}, scenario.Options{})
		if err != nil {
			t.Fatal(explain(err))
		}
		if err := schema.Validate(plain(t, sc.Rendered)); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func documents(t *testing.T, pattern string) []string {
	t.Helper()
	docs, err := filepath.Glob(pattern)
	if err != nil || len(docs) == 0 {
		t.Fatalf("no documents match %s: %v", pattern, err)
	}
	return docs
}

// What is wrong in its keys, types or choices is wrong by the schema too.
func TestTheSchemaRefusesWhatTheParserRefuses(t *testing.T) {
	schema := compileSchema(t)
	for _, name := range []string{"faults/many", "bad/duplicate_keys", "bad/wrong_shapes", "bad/huge_numbers", "bad/vars", "bad/names"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".yml"))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(plain(t, string(text))) == nil && name != "bad/duplicate_keys" {
			t.Errorf("%s is valid by the schema", name)
		}
	}
}

type definition struct {
	Properties map[string]struct {
		Description string
		Enum        []string
		Items       struct{ Enum []string }
	}
	Required []string
	AnyOf    []definition
}

func TestTheSchemaAndTheParserKnowTheSameKeys(t *testing.T) {
	var schema struct {
		definition
		Defs map[string]definition `json:"$defs"`
	}
	must(t, json.Unmarshal(scenario.Schema(), &schema))
	schema.Defs[""] = schema.definition
	schema.Defs["expectation"] = schema.Defs["expectation"].AnyOf[1]
	for name, keys := range scenario.KeyTables() {
		known := slices.Sorted(maps.Keys(schema.Defs[name].Properties))
		if !slices.Equal(known, slices.Sorted(slices.Values(keys))) {
			t.Errorf("definition %q: the schema knows %v, the parser %v", name, known, keys)
		}
		for key, property := range schema.Defs[name].Properties {
			if property.Description == "" {
				t.Errorf("definition %q: %q has no description", name, key)
			}
		}
	}
	for at, choices := range scenario.Choices() {
		property := schema.Defs[at[0]].Properties[at[1]]
		if known := append(property.Enum, property.Items.Enum...); !slices.Equal(known, choices) {
			t.Errorf("%v: the schema knows %v, the parser %v", at, known, choices)
		}
	}
	if !slices.Equal(schema.Required, scenario.TopRequired()) {
		t.Errorf("the schema requires %v, the parser %v", schema.Required, scenario.TopRequired())
	}
}

// The page in docs names every key, choice, filter and unit.
func TestTheDocumentationNamesEverything(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/scenario.md")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, keys := range scenario.KeyTables() {
		words = append(words, keys...)
	}
	for _, choices := range scenario.Choices() {
		words = append(words, choices...)
	}
	for _, word := range append(words, scenario.Statistics()...) {
		if !bytes.Contains(page, []byte("`"+word+"`")) {
			t.Errorf("docs/formats/scenario.md does not name %q", word)
		}
	}
}
