package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report/document"
)

// keys are those of a type of reports by their path: "results[].series[].name".
type keys map[string]documented

// documented is what the documentation says of a key.
type documented struct{ Type, Meaning string }

// keysOf collects the keys of t, with the comments of their fields.
func keysOf(t reflect.Type, path string, comments map[string]string, into keys) {
	hidden := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			keysOf(f.Type, path, comments, into)
			continue
		case key == "" || key == "-" || !f.IsExported():
			continue
		case f.Type.Kind() == reflect.Interface:
			hidden[path+key] = true
			continue
		}
		name := path + key
		inner, null := f.Type, ""
		if inner.Kind() == reflect.Pointer {
			inner, null = inner.Elem(), " or null"
		}
		kind := jsonType(inner, options) + null
		into[name] = documented{kind, comments[t.Name()+"."+f.Name]}
		if inner.Kind() == reflect.Slice && inner.Name() == "" {
			inner, name = inner.Elem(), name+"[]"
		}
		if inner.Kind() == reflect.Struct && isReports(inner) {
			keysOf(inner, name+".", comments, into)
		}
	}
	for key := range hidden {
		for known := range into {
			if known == key || strings.HasPrefix(known, key+"[]") {
				delete(into, known)
			}
		}
	}
}

// fieldComments returns the comments of all fields of these packages: "Document.Run".
func fieldComments(t *testing.T, folders ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					if s, ok := spec.Type.(*ast.StructType); ok {
						addComments(out, spec.Name.Name, s)
					}
				}
				return true
			})
		}
	}
	return out
}

func addComments(into map[string]string, name string, s *ast.StructType) {
	for _, f := range s.Fields.List {
		text := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
		for _, n := range f.Names {
			into[name+"."+n.Name] = strings.TrimSuffix(strings.ReplaceAll(text, "|", "\\|"), ".")
		}
	}
}

// isReports reports whether a struct is written with all its keys; positions and events are described elsewhere.
func isReports(t reflect.Type) bool {
	return regexp.MustCompile(`/(compare|report/document|result|finding)$`).MatchString(t.PkgPath())
}

func jsonType(t reflect.Type, options string) string {
	switch {
	case options == "string", t.Kind() == reflect.String, t.Name() == "Time":
		return "string"
	case t.Name() == "Number":
		return "number or null"
	case t.Name() == "RawMessage":
		return "object or null"
	case t.Name() == "Points", t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		return "array"
	case t.Kind() == reflect.Map, t.Kind() == reflect.Struct:
		return "object"
	case t.Kind() == reflect.Bool:
		return "boolean"
	}
	return "number"
}

// TestKeysAreDocumented holds the tables of docs/formats/report.md and the types to one another; -update rewrites them.
func TestKeysAreDocumented(t *testing.T) {
	const path = "../../docs/formats/report.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	comments := fieldComments(t, "../compare", "document", "../result", "../finding")
	want := string(text)
	for heading, of := range map[string]reflect.Type{
		"## Report\n": reflect.TypeFor[document.Document](), "## Comparison\n": reflect.TypeFor[compare.Comparison](),
		"## Trend\n": reflect.TypeFor[compare.Trend](),
	} {
		before, rest, found := strings.Cut(want, heading)
		introduction, old, table := strings.Cut(rest, "| key | type | holds |")
		if !found || !table {
			t.Fatalf("docs/formats/report.md has no table below %q", heading)
		}
		_, after, _ := strings.Cut(old, "\n\n")
		all := keys{}
		keysOf(of, "", comments, all)
		var b strings.Builder
		b.WriteString("| key | type | holds |\n|---|---|---|\n")
		for _, key := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, all[key].Type, all[key].Meaning)
		}
		want = before + heading + introduction + b.String() + "\n" + after
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	holds := regexp.MustCompile("(?m)^(\\| `.*?` \\| .*? \\|).*$") // comments may be reworded without it
	if holds.ReplaceAllString(want, "$1") != holds.ReplaceAllString(string(text), "$1") {
		t.Errorf("the tables of docs/formats/report.md are not those of the types; go test ./internal/report -run %s -update rewrites them", t.Name())
	}
}

// TestKeysAreAlwaysThere looks at the JSON of a run that has everything and of one that has nothing.
func TestKeysAreAlwaysThere(t *testing.T) {
	empty := &document.Run{}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"report":                func(b *bytes.Buffer) error { return document.JSON(b, exampleRun()) },
		"report of a rehearsal": func(b *bytes.Buffer) error { return document.JSON(b, rehearsalRun()) },
		"empty report":          func(b *bytes.Buffer) error { return document.JSON(b, empty) },
		"comparison":            func(b *bytes.Buffer) error { return compared(t, exampleRun(), exampleRun()).JSON(b) },
		"empty comparison":      func(b *bytes.Buffer) error { return compared(t, empty, empty).JSON(b) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := json.Unmarshal(b.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		of := reflect.TypeFor[document.Document]()
		if strings.Contains(name, "comparison") {
			of = reflect.TypeFor[compare.Comparison]()
		}
		all := keys{}
		keysOf(of, "", nil, all)
		checkKeys(t, name, "", v, all)
	}
}

// checkKeys compares the keys and types of one object with those of its type.
func checkKeys(t *testing.T, name, path string, object map[string]any, all keys) {
	t.Helper()
	for key, d := range all {
		want := d.Type
		rest, ok := strings.CutPrefix(key, path)
		if !ok || strings.ContainsAny(rest, ".[") {
			continue
		}
		value, there := object[rest]
		if got := typeOf(value); !there || !slices.Contains(strings.Split(want, " or "), got) {
			t.Errorf("%s: %s is %s, want %s", name, key, map[bool]string{true: got, false: "missing"}[there], want)
			continue
		}
		switch v := value.(type) {
		case map[string]any:
			checkKeys(t, name, key+".", v, all)
		case []any:
			for _, element := range v {
				if inner, ok := element.(map[string]any); ok {
					checkKeys(t, name, key+"[].", inner, all)
				}
			}
		}
	}
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return fmt.Sprintf("%T", v)
}
