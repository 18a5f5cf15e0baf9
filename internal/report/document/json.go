package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// JSON writes the Document of run, indented, with a line feed at the end.
func JSON(w io.Writer, run *Run) error {
	if err := WriteJSON(w, Build(run)); err != nil {
		return fmt.Errorf("write report %q as json: %w", run.Manifest.Run, err)
	}
	return nil
}

// WriteJSON writes v with every key of its types, also for empty values: an empty list is [], an empty map {}. Bundles omit empty
// values and share types with reports; a program that reads reports should not have to know which keys may be missing. Events are
// written as in the journal, where most keys have a meaning for some kinds only.
func WriteJSON(w io.Writer, v any) error {
	e := &wholeEncoder{seen: map[reflect.Type][]wholeField{}}
	e.leaf = json.NewEncoder(&e.out)
	e.leaf.SetEscapeHTML(false)
	if err := e.value(reflect.ValueOf(v)); err != nil {
		return err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, e.out.Bytes(), "", " "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	_, err := w.Write(indented.Bytes())
	return err
}

// wholeEncoder writes structs of reports, results and findings key by key, and leaves the rest to encoding/json.
type wholeEncoder struct {
	out  bytes.Buffer
	leaf *json.Encoder // into out
	seen map[reflect.Type][]wholeField
}

var marshaler = reflect.TypeFor[json.Marshaler]()

func (e *wholeEncoder) value(v reflect.Value) error {
	if !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
		e.out.WriteString("null")
		return nil
	}
	switch {
	case v.Kind() == reflect.Pointer, v.Kind() == reflect.Interface:
		return e.value(v.Elem())
	case v.Type().Implements(marshaler):
		return e.leaf.Encode(v.Interface())
	case v.Kind() == reflect.Map && v.IsNil():
		e.out.WriteString("{}")
		return nil
	case v.Kind() == reflect.Slice:
		return e.list(v)
	case v.Kind() == reflect.Struct && isWhole(v.Type()):
		return e.object(v)
	}
	return e.leaf.Encode(v.Interface())
}

// isWhole reports whether a struct is written with all its keys.
func isWhole(t reflect.Type) bool {
	for _, name := range []string{"/compare", "/report/document", "/result", "/finding"} {
		if strings.HasSuffix(t.PkgPath(), name) {
			return true
		}
	}
	return false
}

func (e *wholeEncoder) list(v reflect.Value) error {
	e.out.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			e.out.WriteByte(',')
		}
		if err := e.value(v.Index(i)); err != nil {
			return err
		}
	}
	e.out.WriteByte(']')
	return nil
}

func (e *wholeEncoder) object(v reflect.Value) error {
	fields, known := e.seen[v.Type()]
	if !known {
		fields = wholeFields(v.Type())
		e.seen[v.Type()] = fields
	}
	e.out.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			e.out.WriteByte(',')
		}
		fmt.Fprintf(&e.out, "%q:", f.key)
		if f.quoted {
			fmt.Fprintf(&e.out, `"%v"`, v.FieldByIndex(f.index).Interface())
			continue
		}
		if err := e.value(v.FieldByIndex(f.index)); err != nil {
			return err
		}
	}
	e.out.WriteByte('}')
	return nil
}

// wholeField is one key of a struct.
type wholeField struct {
	key    string
	index  []int
	quoted bool
}

// wholeFields lists the keys of a struct in order, with those of embedded structs in place. A field of t hides an embedded field
// with the same key; an omitempty field of type any exists only to hide one.
func wholeFields(t reflect.Type) []wholeField {
	var list []wholeField
	own := map[string]bool{}
	for i := range t.NumField() {
		if f := t.Field(i); !f.Anonymous {
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			own[key] = true
		}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			for _, inner := range wholeFields(f.Type) {
				if !own[inner.key] {
					inner.index = append([]int{i}, inner.index...)
					list = append(list, inner)
				}
			}
		case !f.IsExported(), key == "-", f.Type.Kind() == reflect.Interface && options == "omitempty":
		default:
			list = append(list, wholeField{key, []int{i}, options == "string"})
		}
	}
	return list
}

// cleanRaw returns raw if it is valid JSON, otherwise null.
func cleanRaw(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || !json.Valid(raw) {
		return nil
	}
	return raw
}
