package jinja

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/jinja/syntax"
)

// machine computes expressions, within its budget.
type machine struct {
	budget
	filters map[string]filter
}

// frame is one scope of names.
type frame struct {
	names  map[string]any
	parent *frame
}

func (f *frame) get(name string) (any, bool) {
	for ; f != nil; f = f.parent {
		if v, ok := f.names[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (f *frame) child() *frame { return &frame{names: map[string]any{}, parent: f} }

// eval computes an expression. Its errors have the place of the innermost expression that failed.
func (m *machine) eval(x syntax.Expr, scope *frame) (any, error) {
	if err := m.step(); err != nil {
		return nil, err
	}
	v, err := m.compute(x, scope)
	if err == nil {
		return v, nil
	}
	if endsRun(err) {
		return nil, err
	}
	return nil, x.Place().Fault("template-value", err.Error(), "")
}

func (m *machine) compute(x syntax.Expr, scope *frame) (any, error) {
	switch x := x.(type) {
	case syntax.ConstExpr:
		return x.Value, nil
	case syntax.NameExpr:
		v, ok := scope.get(x.Name)
		if !ok {
			return undefined{x.Name}, nil
		}
		return v, nil
	case syntax.ListExpr:
		return m.list(x, scope)
	case syntax.DictExpr:
		return m.dict(x, scope)
	case syntax.UnaryExpr:
		v, err := m.value(x.X, scope)
		if err != nil || x.Op == "+" {
			return v, err
		}
		return negate(v)
	case syntax.BinaryExpr:
		left, err := m.value(x.Left, scope)
		if err != nil {
			return nil, err
		}
		right, err := m.value(x.Right, scope)
		if err != nil {
			return nil, err
		}
		return m.binary(x.Op, left, right)
	case syntax.LogicExpr, syntax.NotExpr, syntax.CondExpr, syntax.CompareExpr:
		return m.logic(x, scope)
	case syntax.AttrExpr, syntax.ItemExpr, syntax.SliceExpr:
		return m.access(x, scope)
	}
	return m.invoke(x, scope)
}

// value is eval for operands that must have a value.
func (m *machine) value(x syntax.Expr, scope *frame) (any, error) {
	v, err := m.eval(x, scope)
	if u, ok := v.(undefined); ok && err == nil {
		return nil, x.Place().Fault("undefined-name", fmt.Sprintf("%q has no value here", u.name), "")
	}
	return v, err
}

func (m *machine) values(xs []syntax.Expr, scope *frame) ([]any, error) {
	out := make([]any, 0, len(xs))
	for _, x := range xs {
		v, err := m.eval(x, scope)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, m.pay(16 * len(out))
}

func (m *machine) list(x syntax.ListExpr, scope *frame) (any, error) {
	items, err := m.values(x.Items, scope)
	if err != nil {
		return nil, err
	}
	return &list{items: items, tuple: x.Tuple}, nil
}

func (m *machine) dict(x syntax.DictExpr, scope *frame) (any, error) {
	d := &dict{}
	for i := range x.Keys {
		k, err := m.value(x.Keys[i], scope)
		if err != nil {
			return nil, err
		}
		if !hashable(k) {
			return nil, fmt.Errorf("%s cannot be a key", describeValue(k))
		}
		v, err := m.eval(x.Values[i], scope)
		if err != nil {
			return nil, err
		}
		d.set(k, v)
	}
	return d, m.pay(64 * len(d.keys))
}

func hashable(v any) bool {
	switch v.(type) {
	case nil, bool, int64, float64, string:
		return true
	}
	return false
}

// logic computes and, or, not, comparisons and conditional expressions. As in Python, "and" and "or" return one of their
// operands.
func (m *machine) logic(x syntax.Expr, scope *frame) (any, error) {
	switch x := x.(type) {
	case syntax.NotExpr:
		v, err := m.eval(x.X, scope)
		return !truth(v), err
	case syntax.LogicExpr:
		left, err := m.eval(x.Left, scope)
		if err != nil || truth(left) == (x.Op == "or") {
			return left, err
		}
		return m.eval(x.Right, scope)
	case syntax.CondExpr:
		c, err := m.eval(x.Cond, scope)
		switch {
		case err != nil:
			return nil, err
		case truth(c):
			return m.eval(x.Then, scope)
		case x.Other == nil:
			return "", nil
		}
		return m.eval(x.Other, scope)
	}
	c := x.(syntax.CompareExpr)
	left, err := m.value(c.First, scope)
	if err != nil {
		return nil, err
	}
	for i, op := range c.Ops {
		right, err := m.value(c.Rest[i], scope)
		if err != nil {
			return nil, err
		}
		holds, err := m.compare(op, left, right)
		if err != nil || !holds {
			return false, err
		}
		left = right
	}
	return true, nil
}

func (m *machine) compare(op string, a, b any) (bool, error) {
	switch op {
	case "==":
		return m.equal(a, b, 0), nil
	case "!=":
		return !m.equal(a, b, 0), nil
	case "in", "not in":
		found, err := m.contains(b, a)
		return found == (op == "in"), err
	}
	c, err := m.order(a, b, 0)
	switch op {
	case "<":
		return c < 0, err
	case "<=":
		return c <= 0, err
	case ">":
		return c > 0, err
	}
	return c >= 0, err
}

func (m *machine) contains(container, v any) (bool, error) {
	m.workOn(container)
	switch c := container.(type) {
	case string:
		s, ok := v.(string)
		if !ok {
			return false, fmt.Errorf("only text can be in text, not %s", describeValue(v))
		}
		return strings.Contains(c, s), nil
	case *list:
		for _, item := range c.items {
			if m.equal(item, v, 0) {
				return true, nil
			}
		}
		return false, nil
	case *dict:
		if !hashable(v) {
			return false, fmt.Errorf("%s cannot be a key", describeValue(v))
		}
		_, ok := c.get(v)
		return ok, nil
	case numbers:
		i, f, whole, ok := numeric(v)
		if !whole {
			i = int64(f)
			ok = ok && float64(i) == f
		}
		if !ok || c.count == 0 {
			return false, nil
		}
		n := (i - c.start) / c.step
		return n >= 0 && n < c.count && c.start+n*c.step == i, nil
	}
	return false, fmt.Errorf("nothing can be in %s", describeValue(container))
}

// access computes x.name, x[index] and slices.
func (m *machine) access(x syntax.Expr, scope *frame) (any, error) {
	switch x := x.(type) {
	case syntax.AttrExpr:
		v, err := m.value(x.X, scope)
		if err != nil {
			return nil, err
		}
		return m.attribute(v, x.Name)
	case syntax.ItemExpr:
		v, err := m.value(x.X, scope)
		if err != nil {
			return nil, err
		}
		i, err := m.value(x.Index, scope)
		if err != nil {
			return nil, err
		}
		if _, text := v.(string); text {
			m.workOn(v)
		}
		return item(v, i)
	}
	return m.slice(x.(syntax.SliceExpr), scope)
}

func (m *machine) attribute(v any, name string) (any, error) {
	switch o := v.(type) {
	case *loopState:
		if a, ok := o.attribute(name); ok {
			return a, nil
		}
		f := syntax.Unknown(syntax.At{}, "attribute", "loop."+name, loopAttributes)
		return nil, fmt.Errorf("%s", f.Message)
	case *namespace:
		if a, ok := o.attributes.get(name); ok {
			return a, nil
		}
		return undefined{name}, nil
	case *dict:
		if fn, ok := dictMethod(o, name); ok {
			return fn, nil
		}
		if a, ok := o.get(name); ok {
			return a, nil
		}
		return undefined{name}, nil
	case string:
		if fn, ok := stringMethod(o, name); ok {
			return fn, nil
		}
	case *list:
		if fn, ok := listMethod(o, name); ok {
			return fn, nil
		}
	}
	return nil, fmt.Errorf("%s has no attribute %q", describeValue(v), syntax.Shorten(name))
}

func item(v, index any) (any, error) {
	if d, ok := v.(*dict); ok {
		if !hashable(index) {
			return nil, fmt.Errorf("%s cannot be a key", describeValue(index))
		}
		if a, ok := d.get(index); ok {
			return a, nil
		}
		return undefined{str(index)}, nil
	}
	i, _, whole, ok := numeric(index)
	if !ok || !whole {
		return nil, fmt.Errorf("the index is %s, not a whole number", describeValue(index))
	}
	var n int64
	var get func(int64) any
	switch s := v.(type) {
	case *list:
		n, get = int64(len(s.items)), func(i int64) any { return s.items[i] }
	case numbers:
		n, get = s.count, func(i int64) any { return s.item(int(i)) }
	case string:
		runes := []rune(s)
		n, get = int64(len(runes)), func(i int64) any { return string(runes[i]) }
	default:
		return nil, fmt.Errorf("%s has no items", describeValue(v))
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return nil, fmt.Errorf("no item %s among %d", str(index), n)
	}
	return get(i), nil
}

// slice is x[low:high:step] of a text, a list or a range.
func (m *machine) slice(x syntax.SliceExpr, scope *frame) (any, error) {
	v, err := m.value(x.X, scope)
	if err != nil {
		return nil, err
	}
	var bounds [3]*int64
	for i, e := range []syntax.Expr{x.Low, x.High, x.Step} {
		if e == nil {
			continue
		}
		b, err := m.value(e, scope)
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		n, _, whole, ok := numeric(b)
		if !ok || !whole {
			return nil, e.Place().Fault("template-value",
				"a bound of the slice is "+describeValue(b)+", not a whole number", "")
		}
		bounds[i] = &n
	}
	m.workOn(v)
	switch s := v.(type) {
	case string:
		runes := []rune(s)
		indices, err := sliceIndices(bounds, int64(len(runes)))
		var b strings.Builder
		for i := range indices.count {
			b.WriteRune(runes[indices.start+i*indices.step])
		}
		if err != nil {
			return nil, err
		}
		return m.text(b.String())
	case *list:
		indices, err := sliceIndices(bounds, int64(len(s.items)))
		if err == nil {
			err = m.pay(16 * int(indices.count))
		}
		if err != nil {
			return nil, err
		}
		out := &list{tuple: s.tuple}
		for i := range indices.count {
			out.items = append(out.items, s.items[indices.start+i*indices.step])
		}
		return out, nil
	case numbers:
		indices, err := sliceIndices(bounds, s.count)
		return numbers{s.start + indices.start*s.step, s.step * indices.step, indices.count}, err
	}
	return nil, fmt.Errorf("%s cannot be cut", describeValue(v))
}

// sliceIndices clamps the bounds to a list of n items, as Python does.
func sliceIndices(bounds [3]*int64, n int64) (numbers, error) {
	step := int64(1)
	if bounds[2] != nil {
		step = *bounds[2]
	}
	if step == 0 {
		return numbers{}, fmt.Errorf("the step of the slice is 0")
	}
	step = min(max(step, -n-1), n+1)
	start, stop := SliceEnds(bounds[0], bounds[1], step, n)
	return span(start, stop, step), nil
}

// SliceEnds returns start and stop like Python's slice.indices: clamped to the list, or to -1 and n-1 with a negative step.
func SliceEnds[T int | int64](start, stop *T, step, n T) (T, T) {
	low, high := T(0), n
	if step < 0 {
		low, high = -1, n-1
	}
	cut := func(b *T, absent T) T {
		if b == nil {
			return absent
		}
		i := *b
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	if step < 0 {
		return cut(start, high), cut(stop, low)
	}
	return cut(start, low), cut(stop, high)
}

// span counts the numbers from start to before stop.
func span(start, stop, step int64) numbers {
	count := int64(0)
	switch {
	case step > 0 && start < stop:
		count = (stop-start-1)/step + 1
	case step < 0 && start > stop:
		count = (start-stop-1)/-step + 1
	}
	return numbers{start, step, count}
}

// runeCount is the length of a text in characters.
func runeCount(s string) int64 { return int64(utf8.RuneCountInString(s)) }
