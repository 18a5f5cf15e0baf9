package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/jinja/syntax"
)

// filter computes x | name(args).
type filter func(m *machine, x any, args callArgs) (any, error)

// filters lists every filter. It is a function, because the filter map refers back to the list.
func filters() map[string]filter {
	table := map[string]filter{
		"abs":        filterAbs,
		"batch":      filterBatch,
		"capitalize": textFilter(capitalize),
		"count":      filterLength,
		"default":    filterDefault,
		"dictsort":   filterDictsort,
		"first":      filterFirst,
		"float":      filterFloat,
		"format":     filterFormat,
		"int":        filterInt,
		"items":      filterItems,
		"join":       filterJoin,
		"last":       filterLast,
		"length":     filterLength,
		"list":       filterList,
		"lower":      textFilter(strings.ToLower),
		"map":        filterMap,
		"max":        extreme(1),
		"min":        extreme(-1),
		"reject":     filterSelect(false),
		"replace":    filterReplace,
		"reverse":    filterReverse,
		"round":      filterRound,
		"select":     filterSelect(true),
		"sort":       filterSort,
		"string":     textFilter(func(s string) string { return s }),
		"sum":        filterSum,
		"title":      textFilter(title),
		"tojson":     filterJSON,
		"trim":       textFilter(func(s string) string { return strings.Trim(s, syntax.Blanks+"\v\f") }),
		"unique":     filterUnique,
		"upper":      textFilter(strings.ToUpper),
	}
	table["d"] = table["default"]
	return table
}

// textFilter works on the printed value and takes no arguments.
func textFilter(change func(string) string) filter {
	return func(m *machine, x any, args callArgs) (any, error) {
		if _, err := args.bind(); err != nil {
			return nil, err
		}
		return m.text(change(str(x)))
	}
}

func capitalize(s string) string {
	runes := []rune(strings.ToLower(s))
	if len(runes) > 0 {
		return strings.ToUpper(string(runes[:1])) + string(runes[1:])
	}
	return ""
}

// title capitalizes the first letter of every word; words end at blanks, hyphens and opening brackets.
func title(s string) string {
	var b strings.Builder
	start := true
	for _, r := range strings.ToLower(s) {
		if start {
			b.WriteString(strings.ToUpper(string(r)))
		} else {
			b.WriteRune(r)
		}
		start = strings.ContainsRune("-({[< \t\n\r\v\f", r)
	}
	return b.String()
}

func filterAbs(_ *machine, x any, _ callArgs) (any, error) {
	i, f, whole, ok := numeric(x)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is not a number", describeValue(x))
	case !whole:
		return math.Abs(f), nil
	case i < 0:
		return negate(i)
	}
	return i, nil
}

func filterDefault(_ *machine, x any, args callArgs) (any, error) {
	a, err := args.bind(param{"default_value", ""}, param{"boolean", false})
	if err != nil {
		return nil, err
	}
	if _, ok := x.(undefined); ok || (truth(a["boolean"]) && !truth(x)) {
		return a["default_value"], nil
	}
	return x, nil
}

func filterLength(_ *machine, x any, _ callArgs) (any, error) {
	switch v := x.(type) {
	case string:
		return runeCount(v), nil
	case *list:
		return int64(len(v.items)), nil
	case *dict:
		return int64(len(v.keys)), nil
	case numbers:
		return v.count, nil
	}
	return nil, fmt.Errorf("%s has no length", describeValue(x))
}

// filterInt reads a number or numeric text; otherwise it returns the default.
func filterInt(_ *machine, x any, args callArgs) (any, error) {
	a, err := args.bind(param{"default", int64(0)}, param{"base", int64(10)})
	if err != nil {
		return nil, err
	}
	base, err := whole(a["base"], "base")
	if err != nil {
		return nil, err
	}
	if s, ok := x.(string); ok {
		s = strings.ReplaceAll(strings.TrimSpace(s), "_", "")
		if i, err := strconv.ParseInt(trimBase(s, base), int(base), 64); err == nil {
			return i, nil
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return a["default"], nil
		}
		x = f
	}
	i, f, isWhole, ok := numeric(x)
	switch {
	case !ok || math.IsNaN(f) || math.IsInf(f, 0):
		return a["default"], nil
	case isWhole:
		return i, nil
	case math.Abs(f) >= 1<<63:
		return nil, errTooLarge
	}
	return int64(f), nil
}

// trimBase removes a prefix such as "0x", which is allowed before a number of that base.
func trimBase(s string, base int64) string {
	prefix := map[int64]string{2: "0b", 8: "0o", 16: "0x"}[base]
	if prefix != "" && len(s) > 2 && strings.EqualFold(s[:2], prefix) {
		return s[2:]
	}
	return s
}

func filterFloat(_ *machine, x any, args callArgs) (any, error) {
	a, err := args.bind(param{"default", 0.0})
	if err != nil {
		return nil, err
	}
	if s, ok := x.(string); ok {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return a["default"], nil
		}
		return f, nil
	}
	if _, f, _, ok := numeric(x); ok {
		return f, nil
	}
	return a["default"], nil
}

// filterRound rounds as Python does: halves go to the even neighbor, and a float stays a float.
func filterRound(_ *machine, x any, args callArgs) (any, error) {
	a, err := args.bind(param{"precision", int64(0)}, param{"method", "common"})
	if err != nil {
		return nil, err
	}
	_, f, _, ok := numeric(x)
	digits, err := whole(a["precision"], "precision")
	if !ok || err != nil {
		return nil, fmt.Errorf("%s cannot be rounded", describeValue(x))
	}
	if digits > 300 || digits < -300 {
		return nil, fmt.Errorf("the precision is %d", digits)
	}
	scale := math.Pow(10, float64(digits))
	switch a["method"] {
	case "ceil":
		return math.Ceil(f*scale) / scale, nil
	case "floor":
		return math.Floor(f*scale) / scale, nil
	case "common":
		if i, isInt := x.(int64); isInt && digits >= 0 {
			return i, nil
		}
		if digits < 0 {
			return math.RoundToEven(f*scale) / scale, nil
		}
		return strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(digits), 64), 64)
	}
	return nil, fmt.Errorf("the method is common, ceil or floor")
}

func filterReplace(m *machine, x any, args callArgs) (any, error) {
	a, err := args.bind(param{"old", noDefault}, param{"new", noDefault}, param{"count", nil})
	if err != nil {
		return nil, err
	}
	n := int64(-1)
	if a["count"] != nil {
		if n, err = whole(a["count"], "count"); err != nil {
			return nil, err
		}
	}
	return m.replace(str(x), str(a["old"]), str(a["new"]), int(n))
}

// replace pays for the result before it creates it.
func (m *machine) replace(s, old, with string, n int) (any, error) {
	hits := strings.Count(s, old)
	if n >= 0 {
		hits = min(hits, n)
	}
	if err := m.payTimes(len(with), int64(hits)); err != nil {
		return nil, err
	}
	return m.text(strings.Replace(s, old, with, n))
}

func filterFormat(m *machine, x any, args callArgs) (any, error) {
	if len(args.named) > 0 {
		return nil, fmt.Errorf("takes no named arguments")
	}
	return m.percentFormat(str(x), args.positional)
}

// percentFormat is Python's "…" % (…) with d, i, s, r, f, e, g, x, o and %%.
func (m *machine) percentFormat(format string, values []any) (any, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		end := i + 1
		for end < len(format) && strings.IndexByte("-+ 0#.123456789", format[end]) >= 0 {
			end++
		}
		if end >= len(format) {
			return nil, fmt.Errorf("the format ends in the middle of a field")
		}
		flags, verb := format[i+1:end], format[end]
		i = end
		if verb == '%' {
			b.WriteByte('%')
			continue
		}
		if len(values) == 0 {
			return nil, fmt.Errorf("the format has more fields than there are values")
		}
		text, err := formatOne(flags, verb, values[0])
		if err == nil {
			err = m.pay(len(text))
		}
		if err != nil {
			return nil, err
		}
		b.WriteString(text)
		values = values[1:]
	}
	if len(values) > 0 {
		return nil, fmt.Errorf("there are more values than the format has fields")
	}
	return m.text(b.String())
}

func formatOne(flags string, verb byte, v any) (string, error) {
	for _, number := range strings.FieldsFunc(flags, func(r rune) bool { return r < '0' || r > '9' }) {
		if len(number) > 3 {
			return "", fmt.Errorf("the width %s is too large", number)
		}
	}
	i, f, whole, ok := numeric(v)
	switch verb {
	case 's':
		return fmt.Sprintf("%"+flags+"s", str(v)), nil
	case 'r':
		return fmt.Sprintf("%"+flags+"s", repr(v, 0)), nil
	case 'd', 'i', 'x', 'X', 'o':
		if verb == 'i' {
			verb = 'd'
		}
		if ok && !whole && verb == 'd' {
			i, whole = int64(f), math.Abs(f) < 1<<62
		}
		if ok && whole {
			return fmt.Sprintf("%"+flags+string(verb), i), nil
		}
	case 'f', 'F', 'e', 'E', 'g', 'G':
		if ok {
			if (verb|0x20 == 'g') && !strings.Contains(flags, ".") {
				flags += ".6"
			}
			return fmt.Sprintf("%"+flags+string(verb), f), nil
		}
	default:
		return "", fmt.Errorf("unknown field %%%c", verb)
	}
	return "", fmt.Errorf("%%%c cannot print %s", verb, describeValue(v))
}
