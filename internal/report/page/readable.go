package page

import (
	"reflect"

	"github.com/braggdev/bragg/internal/textio"
)

// textRunesMax bounds one text of unknown origin in forms for people.
const textRunesMax = 4000

// Readable returns a copy of v whose strings are all safe to show: names of scenarios, VMs and targets are of unknown origin and
// may hold escape codes or characters that reorder text. Handling all strings at once means that none can be forgotten. Values
// without strings are shared with v.
func Readable[T any](v T) T {
	in := reflect.ValueOf(&v).Elem()
	out := reflect.New(in.Type()).Elem()
	copyReadable(out, in)
	return out.Interface().(T)
}

func copyReadable(out, in reflect.Value) {
	if !holdsStrings(in.Type(), nil) {
		out.Set(in)
		return
	}
	switch in.Kind() {
	case reflect.String:
		out.SetString(textio.Clip(textio.Line(in.String()), textRunesMax))
	case reflect.Pointer:
		if !in.IsNil() {
			out.Set(reflect.New(in.Type().Elem()))
			copyReadable(out.Elem(), in.Elem())
		}
	case reflect.Struct:
		out.Set(in) // unexported fields are internal and stay unchanged
		for i := range in.NumField() {
			if in.Type().Field(i).IsExported() {
				copyReadable(out.Field(i), in.Field(i))
			}
		}
	case reflect.Slice:
		if in.IsNil() {
			return
		}
		out.Set(reflect.MakeSlice(in.Type(), in.Len(), in.Len()))
		for i := range in.Len() {
			copyReadable(out.Index(i), in.Index(i))
		}
	case reflect.Array:
		for i := range in.Len() {
			copyReadable(out.Index(i), in.Index(i))
		}
	case reflect.Map:
		copyReadableMap(out, in)
	default:
		out.Set(in)
	}
}

func copyReadableMap(out, in reflect.Value) {
	if in.IsNil() {
		return
	}
	out.Set(reflect.MakeMapWithSize(in.Type(), in.Len()))
	for entries := in.MapRange(); entries.Next(); {
		key, value := reflect.New(in.Type().Key()).Elem(), reflect.New(in.Type().Elem()).Elem()
		copyReadable(key, entries.Key())
		copyReadable(value, entries.Value())
		out.SetMapIndex(key, value)
	}
}

// holdsStrings reports whether a value of type t can hold a string; other values, such as the points of a chart, are not copied.
func holdsStrings(t reflect.Type, above []reflect.Type) bool {
	for _, a := range above {
		if a == t {
			return false
		}
	}
	switch t.Kind() {
	case reflect.String:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return holdsStrings(t.Elem(), append(above, t))
	case reflect.Map:
		return holdsStrings(t.Key(), append(above, t)) || holdsStrings(t.Elem(), append(above, t))
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && holdsStrings(f.Type, append(above, t)) {
				return true
			}
		}
	}
	return false
}
