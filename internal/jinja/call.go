package jinja

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/jinja/syntax"
)

// invoke computes calls, filters and tests.
func (m *machine) invoke(x syntax.Expr, scope *frame) (any, error) {
	switch x := x.(type) {
	case syntax.CallExpr:
		v, err := m.value(x.Fn, scope)
		if err != nil {
			return nil, err
		}
		fn, ok := v.(function)
		if !ok {
			return nil, x.Fn.Place().Fault("template-value", describeValue(v)+" cannot be called", "")
		}
		args, err := m.arguments(x.Args, scope)
		if err != nil {
			return nil, err
		}
		out, err := fn.call(m, args)
		return out, named(fn.name, err)
	case syntax.FilterExpr:
		v, err := m.eval(x.X, scope)
		if err != nil {
			return nil, err
		}
		args, err := m.arguments(x.Args, scope)
		if err != nil {
			return nil, err
		}
		out, err := m.applyFilter(x.Name, v, args)
		if err == nil {
			return out, nil
		}
		if u, ok := v.(undefined); ok {
			return nil, x.X.Place().Fault("undefined-name", fmt.Sprintf("%q has no value here", u.name), "")
		}
		return nil, named("filter "+x.Name, err)
	case syntax.TestExpr:
		v, err := m.eval(x.X, scope)
		if err != nil {
			return nil, err
		}
		args, err := m.arguments(x.Args, scope)
		if err != nil {
			return nil, err
		}
		m.workOn(v)
		out, err := testTable[x.Name](m, v, args)
		return out, named("test "+x.Name, err)
	}
	return nil, fmt.Errorf("this expression is not understood")
}

// named prefixes an error with the name of the call that failed, unless the error ends the rendering.
func named(name string, err error) error {
	if err == nil || endsRun(err) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (m *machine) applyFilter(name string, v any, args callArgs) (any, error) {
	m.workOn(v)
	if _, ok := v.(undefined); ok && name != "default" && name != "d" {
		return nil, fmt.Errorf("no value")
	}
	return m.filters[name](m, v, args)
}

func (m *machine) arguments(a syntax.Arguments, scope *frame) (callArgs, error) {
	positional, err := m.values(a.Positional, scope)
	if err != nil {
		return callArgs{}, err
	}
	out := callArgs{positional: positional, named: map[string]any{}}
	for i, name := range a.Names {
		if out.named[name], err = m.eval(a.Named[i], scope); err != nil {
			return callArgs{}, err
		}
	}
	return out, nil
}

// bind assigns the arguments to the parameters, with defaults for missing ones. noDefault marks a required parameter.
func (a callArgs) bind(params ...param) (map[string]any, error) {
	if len(a.positional) > len(params) {
		return nil, fmt.Errorf("takes at most %d arguments, not %d", len(params), len(a.positional))
	}
	out := map[string]any{}
	for i, p := range params {
		v, given := a.named[p.name]
		if i < len(a.positional) {
			if given {
				return nil, fmt.Errorf("argument %q is given twice", p.name)
			}
			v, given = a.positional[i], true
		}
		if !given {
			if p.fallback == noDefault {
				return nil, fmt.Errorf("argument %q is missing", p.name)
			}
			v = p.fallback
		}
		if u, ok := v.(undefined); ok {
			return nil, fmt.Errorf("argument %q: %q has no value here", p.name, u.name)
		}
		out[p.name] = v
	}
	for name := range a.named {
		if _, ok := out[name]; !ok {
			return nil, fmt.Errorf("unknown argument %q", syntax.Shorten(name))
		}
	}
	return out, nil
}

type param struct {
	name     string
	fallback any
}

type missing struct{}

var noDefault any = missing{}

// whole reads an argument that must be an integer.
func whole(v any, name string) (int64, error) {
	i, _, isWhole, ok := numeric(v)
	if !ok || !isWhole {
		return 0, fmt.Errorf("argument %q is %s, not a whole number", name, describeValue(v))
	}
	return i, nil
}

// globals are the names that every template knows, and its variables.
func globals(variables map[string]any) *frame {
	names := map[string]any{
		"range":     function{"range", callRange},
		"dict":      function{"dict", callDict},
		"namespace": function{"namespace", callNamespace},
	}
	maps.Copy(names, variables)
	return &frame{names: names}
}

func callRange(_ *machine, args callArgs) (any, error) {
	if len(args.named) > 0 || len(args.positional) < 1 || len(args.positional) > 3 {
		return nil, fmt.Errorf("takes one, two or three whole numbers")
	}
	bounds := [3]int64{0, 0, 1}
	for i, v := range args.positional {
		n, err := whole(v, "bound")
		if err != nil || n > math.MaxInt32 || n < math.MinInt32 {
			return nil, fmt.Errorf("%s is not an integer of a sensible size", repr(v, 0))
		}
		bounds[i] = n
	}
	if len(args.positional) == 1 {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	if bounds[2] == 0 {
		return nil, fmt.Errorf("the step is 0")
	}
	return span(bounds[0], bounds[1], bounds[2]), nil
}

func callDict(m *machine, args callArgs) (any, error) {
	if len(args.positional) > 0 {
		return nil, fmt.Errorf("takes only named arguments")
	}
	d := &dict{}
	for _, name := range slices.Sorted(maps.Keys(args.named)) {
		d.set(name, args.named[name])
	}
	return d, m.pay(64 * len(d.keys))
}

func callNamespace(m *machine, args callArgs) (any, error) {
	v, err := callDict(m, args)
	if err != nil {
		return nil, err
	}
	return &namespace{attributes: *v.(*dict)}, nil
}
