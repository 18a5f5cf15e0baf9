package jinja

import (
	"fmt"
	"math"
	"strings"
)

// binary computes left op right with Python's semantics. Integers have 64 bits; overflow is an error.
func (m *machine) binary(op string, left, right any) (any, error) {
	if op == "~" {
		return m.text(str(left) + str(right))
	}
	i, f, wholeA, okA := numeric(left)
	j, g, wholeB, okB := numeric(right)
	switch {
	case okA && okB && wholeA && wholeB && op != "/":
		return wholeOp(op, i, j)
	case okA && okB:
		return floatOp(op, f, g)
	case op == "+":
		return m.join(left, right)
	case op == "*" && okB && wholeB:
		return m.repeat(left, j)
	case op == "*" && okA && wholeA:
		return m.repeat(right, i)
	case op == "%" && typeName(left) == "str":
		args, ok := right.(*list)
		if !ok || !args.tuple {
			args = &list{items: []any{right}}
		}
		return m.percentFormat(left.(string), args.items)
	}
	return nil, mismatch(op, left, right)
}

func mismatch(op string, left, right any) error {
	return fmt.Errorf("%s %s %s is not possible", typeName(left), op, typeName(right))
}

// join is + on two texts or two lists.
func (m *machine) join(left, right any) (any, error) {
	if s, ok := left.(string); ok {
		if t, ok := right.(string); ok {
			return m.text(s + t)
		}
	}
	x, okX := left.(*list)
	y, okY := right.(*list)
	if okX && okY && x.tuple == y.tuple {
		if err := m.pay(16 * (len(x.items) + len(y.items))); err != nil {
			return nil, err
		}
		return &list{items: append(append([]any(nil), x.items...), y.items...), tuple: x.tuple}, nil
	}
	return nil, mismatch("+", left, right)
}

// repeat is a text or list times an integer. It checks the cost before it allocates.
func (m *machine) repeat(v any, n int64) (any, error) {
	n = max(n, 0)
	switch x := v.(type) {
	case string:
		if err := m.payTimes(len(x), n); err != nil {
			return nil, err
		}
		return strings.Repeat(x, int(n)), nil
	case *list:
		if err := m.payTimes(16*len(x.items), n); err != nil {
			return nil, err
		}
		if len(x.items) == 0 {
			return &list{tuple: x.tuple}, nil
		}
		out := &list{tuple: x.tuple}
		for range n {
			out.items = append(out.items, x.items...)
		}
		return out, nil
	}
	return nil, mismatch("*", v, n)
}

var errTooLarge = fmt.Errorf("the number is too large")

func wholeOp(op string, a, b int64) (any, error) {
	switch op {
	case "+":
		if c := a + b; (c > a) == (b > 0) {
			return c, nil
		}
		return nil, errTooLarge
	case "-":
		if c := a - b; (c < a) == (b > 0) {
			return c, nil
		}
		return nil, errTooLarge
	case "*":
		return multiply(a, b)
	case "**":
		return power(a, b)
	}
	if b == 0 {
		return nil, fmt.Errorf("division by zero")
	}
	if a == math.MinInt64 && b == -1 {
		return nil, errTooLarge
	}
	quotient, rest := a/b, a%b
	if rest != 0 && (rest < 0) != (b < 0) { // Python rounds down, Go towards zero
		quotient, rest = quotient-1, rest+b
	}
	if op == "%" {
		return rest, nil
	}
	return quotient, nil
}

func multiply(a, b int64) (any, error) {
	if a == 0 || b == 0 {
		return int64(0), nil
	}
	c := a * b
	if c/b != a || (a == -1 && b == math.MinInt64) || (b == -1 && a == math.MinInt64) {
		return nil, errTooLarge
	}
	return c, nil
}

// power multiplies at most 63 times: any base except -1, 0 and 1 overflows by then.
func power(a, b int64) (any, error) {
	if b < 0 {
		if a == 0 {
			return nil, fmt.Errorf("division by zero")
		}
		return math.Pow(float64(a), float64(b)), nil
	}
	switch a {
	case 0, 1:
		if b == 0 {
			return int64(1), nil
		}
		return a, nil
	case -1:
		return 1 - 2*(b%2), nil
	}
	if b > 63 {
		return nil, errTooLarge
	}
	result := int64(1)
	for range b {
		next, err := multiply(result, a)
		if err != nil {
			return nil, err
		}
		result = next.(int64)
	}
	return result, nil
}

func floatOp(op string, a, b float64) (any, error) {
	var c float64
	switch op {
	case "+":
		c = a + b
	case "-":
		c = a - b
	case "*":
		c = a * b
	case "**":
		if a == 0 && b < 0 {
			return nil, fmt.Errorf("division by zero")
		}
		c = math.Pow(a, b)
		if math.IsNaN(c) && !math.IsNaN(a) && !math.IsNaN(b) {
			return nil, fmt.Errorf("the root of a negative number")
		}
	default:
		if b == 0 {
			return nil, fmt.Errorf("division by zero")
		}
		switch op {
		case "/":
			c = a / b
		case "//":
			c = math.Floor(a / b)
		case "%":
			c = math.Mod(a, b)
			if c != 0 && (c < 0) != (b < 0) {
				c += b
			}
		}
	}
	if math.IsInf(c, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		return nil, errTooLarge
	}
	return c, nil
}

func negate(v any) (any, error) {
	i, f, whole, ok := numeric(v)
	switch {
	case !ok:
		return nil, fmt.Errorf("-%s is not possible", typeName(v))
	case !whole:
		return -f, nil
	case i == math.MinInt64:
		return nil, errTooLarge
	}
	return -i, nil
}
