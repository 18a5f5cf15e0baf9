package jinja

import (
	"fmt"
	"strings"
)

// test computes x is name(args).
type test func(m *machine, x any, args callArgs) (any, error)

var testTable = map[string]test{
	"defined":   func(_ *machine, x any, _ callArgs) (any, error) { _, no := x.(undefined); return !no, nil },
	"undefined": func(_ *machine, x any, _ callArgs) (any, error) { _, yes := x.(undefined); return yes, nil },
	"none":      func(_ *machine, x any, _ callArgs) (any, error) { return x == nil, nil },
	"boolean":   func(_ *machine, x any, _ callArgs) (any, error) { _, ok := x.(bool); return ok, nil },
	"true":      func(_ *machine, x any, _ callArgs) (any, error) { return x == true, nil },
	"false":     func(_ *machine, x any, _ callArgs) (any, error) { return x == false, nil },
	"integer":   func(_ *machine, x any, _ callArgs) (any, error) { _, ok := x.(int64); return ok, nil },
	"float":     func(_ *machine, x any, _ callArgs) (any, error) { _, ok := x.(float64); return ok, nil },
	"number":    func(_ *machine, x any, _ callArgs) (any, error) { _, _, _, ok := numeric(x); return ok, nil },
	"string":    func(_ *machine, x any, _ callArgs) (any, error) { _, ok := x.(string); return ok, nil },
	"mapping":   func(_ *machine, x any, _ callArgs) (any, error) { _, ok := x.(*dict); return ok, nil },
	"iterable":  func(_ *machine, x any, _ callArgs) (any, error) { return isSequence(x), nil },
	"sequence":  func(_ *machine, x any, _ callArgs) (any, error) { return isSequence(x), nil },
	"lower": func(_ *machine, x any, _ callArgs) (any, error) {
		s := str(x)
		return s == strings.ToLower(s) && s != strings.ToUpper(s), nil
	},
	"upper": func(_ *machine, x any, _ callArgs) (any, error) {
		s := str(x)
		return s == strings.ToUpper(s) && s != strings.ToLower(s), nil
	},
	"odd":         func(m *machine, x any, _ callArgs) (any, error) { return m.divides(x, 2, 1) },
	"even":        func(m *machine, x any, _ callArgs) (any, error) { return m.divides(x, 2, 0) },
	"divisibleby": testDivisible,
	"in": func(m *machine, x any, args callArgs) (any, error) {
		other, err := args.one()
		if err != nil {
			return nil, err
		}
		return m.contains(other, x)
	},
	"eq": comparison("=="), "equalto": comparison("=="), "ne": comparison("!="),
	"lt": comparison("<"), "lessthan": comparison("<"), "le": comparison("<="),
	"gt": comparison(">"), "greaterthan": comparison(">"), "ge": comparison(">="),
}

func isSequence(x any) bool {
	switch x.(type) {
	case string, *list, *dict, numbers:
		return true
	}
	return false
}

func comparison(op string) test {
	return func(m *machine, x any, args callArgs) (any, error) {
		other, err := args.one()
		if err != nil {
			return nil, err
		}
		return m.compare(op, x, other)
	}
}

// one returns the only argument.
func (a callArgs) one() (any, error) {
	if len(a.positional) != 1 || len(a.named) > 0 {
		return nil, fmt.Errorf("takes one argument")
	}
	return a.positional[0], nil
}

func testDivisible(m *machine, x any, args callArgs) (any, error) {
	other, err := args.one()
	if err != nil {
		return nil, err
	}
	return m.divides(x, other, 0)
}

// divides reports whether x % by is rest.
func (m *machine) divides(x, by any, rest int64) (any, error) {
	if n, ok := by.(int); ok {
		by = int64(n)
	}
	v, err := m.binary("%", x, by)
	if _, text := x.(string); err != nil || text {
		return nil, fmt.Errorf("%s is not an integer", describeValue(x))
	}
	return m.equal(v, rest, 0), nil
}
