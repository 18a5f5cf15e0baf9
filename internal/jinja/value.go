package jinja

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/jinja/syntax"
)

// A value is nil, bool, int64, float64, string or one of these.
type (
	// list is a list, or a tuple, which prints with round brackets. Lists are shared by reference, as in Python.
	list struct {
		items []any
		tuple bool
	}
	// dict keeps the order in which keys were added. Keys are nil, bool, int64, float64 or string.
	dict struct {
		keys   []any
		values map[any]any
	}
	// span of whole numbers, as range() makes it; it is never stored as a list.
	numbers struct{ start, step, count int64 }
	// namespace is an object with attributes that loops can change.
	namespace struct{ attributes dict }
	// undefined is a name without a value. Only default, defined and undefined accept it.
	undefined struct{ name string }
	// function can be called.
	function struct {
		name string
		call func(m *machine, args callArgs) (any, error)
	}
)

// callArgs are evaluated arguments.
type callArgs struct {
	positional []any
	named      map[string]any
}

func (d *dict) set(key, value any) {
	if d.values == nil {
		d.values = map[any]any{}
	}
	key = normalKey(key)
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = value
}

func (d *dict) get(key any) (any, bool) {
	v, ok := d.values[normalKey(key)]
	return v, ok
}

// normalKey makes 1, 1.0 and True the same key, as in Python.
func normalKey(key any) any {
	switch k := key.(type) {
	case bool:
		return asInt(k)
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int64(k)
		}
	}
	return key
}

func asInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// typeName is the name of a value's type in messages; the words are Python's.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *list:
		if v.tuple {
			return "tuple"
		}
		return "list"
	case *dict:
		return "dict"
	case numbers:
		return "range"
	case *namespace:
		return "namespace"
	case undefined:
		return "undefined"
	}
	return "function"
}

// truth is Python's: zero, empty and none are false.
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *list:
		return len(v.items) > 0
	case *dict:
		return len(v.keys) > 0
	case numbers:
		return v.count > 0
	}
	return true
}

// numeric returns v as both kinds of number. whole reports which one is exact.
func numeric(v any) (i int64, f float64, whole, ok bool) {
	switch n := v.(type) {
	case bool:
		i = asInt(n)
		return i, float64(i), true, true
	case int64:
		return n, float64(n), true, true
	case float64:
		return 0, n, false, true
	}
	return 0, 0, false, false
}

// equal is Python's ==: numbers compare by value, lists and dictionaries by content.
func (m *machine) equal(a, b any, depth int) bool {
	if m.work(1); depth > syntax.DepthMax || m.steps > m.limits.Steps {
		return false
	}
	i, f, wholeA, okA := numeric(a)
	j, g, wholeB, okB := numeric(b)
	if okA && okB {
		if wholeA && wholeB {
			return i == j
		}
		return f == g
	}
	switch x := a.(type) {
	case nil:
		return b == nil
	case string:
		y, ok := b.(string)
		m.work(len(x) / bytesPerStep)
		return ok && x == y
	case *list:
		y, ok := b.(*list)
		if !ok || x.tuple != y.tuple || len(x.items) != len(y.items) {
			return false
		}
		for n := range x.items {
			if !m.equal(x.items[n], y.items[n], depth+1) {
				return false
			}
		}
		return true
	case *dict:
		y, ok := b.(*dict)
		if !ok || len(x.keys) != len(y.keys) {
			return false
		}
		for _, k := range x.keys {
			v, ok := y.get(k)
			if !ok || !m.equal(x.values[k], v, depth+1) {
				return false
			}
		}
		return true
	case numbers:
		y, ok := b.(numbers)
		return ok && x == y
	}
	return false
}

// order compares two numbers, two texts or two lists.
func (m *machine) order(a, b any, depth int) (int, error) {
	m.work(1)
	i, f, wholeA, okA := numeric(a)
	j, g, wholeB, okB := numeric(b)
	if okA && okB {
		if wholeA && wholeB {
			return cmp.Compare(i, j), nil
		}
		return cmp.Compare(f, g), nil
	}
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			m.work(len(x) / bytesPerStep)
			return cmp.Compare(x, y), nil
		}
	}
	x, okX := a.(*list)
	y, okY := b.(*list)
	if okX && okY && x.tuple == y.tuple && depth < syntax.DepthMax {
		for n := range min(len(x.items), len(y.items)) {
			if !m.equal(x.items[n], y.items[n], 0) {
				return m.order(x.items[n], y.items[n], depth+1)
			}
		}
		return cmp.Compare(len(x.items), len(y.items)), nil
	}
	return 0, fmt.Errorf("%s and %s cannot be ordered", typeName(a), typeName(b))
}

// str prints a value as {{ … }} does.
func str(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return repr(v, 0)
}

// reprBytesMax bounds what printing one list can cost; larger texts end in an ellipsis.
const reprBytesMax = 1 << 20

// repr prints a value as inside a list.
func repr(v any, depth int) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return reprFloat(v)
	case string:
		return reprString(v)
	case *list:
		open, closer := "[", "]"
		if v.tuple {
			open, closer = "(", ")"
		}
		if v.tuple && len(v.items) == 1 {
			closer = ",)"
		}
		return reprItems(open, closer, len(v.items), depth, func(i int) string { return repr(v.items[i], depth+1) })
	case *dict:
		return reprItems("{", "}", len(v.keys), depth, func(i int) string {
			return repr(v.keys[i], depth+1) + ": " + repr(v.values[v.keys[i]], depth+1)
		})
	case numbers:
		if v.step == 1 {
			return fmt.Sprintf("range(%d, %d)", v.start, v.start+v.count)
		}
		return fmt.Sprintf("range(%d, %d, %d)", v.start, v.start+v.count*v.step, v.step)
	case undefined:
		return ""
	}
	return "<" + typeName(v) + ">"
}

func reprItems(open, closer string, count, depth int, item func(int) string) string {
	var b strings.Builder
	b.WriteString(open)
	for i := range count {
		if i > 0 {
			b.WriteString(", ")
		}
		if depth > 8 || b.Len() > reprBytesMax {
			b.WriteString("...")
			break
		}
		b.WriteString(item(i))
	}
	b.WriteString(closer)
	return b.String()
}

// reprFloat prints the shortest text that reads back as f, with an exponent below 1e-4 and from 1e16 on.
func reprFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func reprString(s string) string {
	quote := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = `"`
	}
	r := strings.NewReplacer(`\`, `\\`, quote, `\`+quote, "\n", `\n`, "\t", `\t`, "\r", `\r`)
	return quote + r.Replace(s) + quote
}
