package jinja

import (
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/jinja/syntax"
)

// plain makes a method without arguments.
func plain(name string, call func(m *machine) (any, error)) function {
	return function{name, func(m *machine, args callArgs) (any, error) {
		if _, err := args.bind(); err != nil {
			return nil, err
		}
		return call(m)
	}}
}

func dictMethod(d *dict, name string) (function, bool) {
	switch name {
	case "items":
		return plain(name, func(m *machine) (any, error) { return filterItems(m, d, callArgs{}) }), true
	case "keys":
		return plain(name, func(m *machine) (any, error) { return filterList(m, d, callArgs{}) }), true
	case "values":
		return plain(name, func(m *machine) (any, error) {
			out := &list{}
			for _, k := range d.keys {
				out.items = append(out.items, d.values[k])
			}
			return out, m.pay(16 * len(d.keys))
		}), true
	case "get":
		return function{name, func(_ *machine, args callArgs) (any, error) {
			a, err := args.bind(param{"key", noDefault}, param{"default", nil})
			if err != nil {
				return nil, err
			}
			if v, ok := d.get(a["key"]); ok && hashable(a["key"]) {
				return v, nil
			}
			return a["default"], nil
		}}, true
	}
	return function{}, false
}

func listMethod(l *list, name string) (function, bool) {
	switch name {
	case "append":
		if l.tuple {
			return function{}, false
		}
		return function{name, func(m *machine, args callArgs) (any, error) {
			v, err := args.one()
			if err != nil {
				return nil, err
			}
			l.items = append(l.items, v)
			return nil, m.pay(16)
		}}, true
	case "count", "index":
		return function{name, func(m *machine, args callArgs) (any, error) {
			v, err := args.one()
			if err != nil {
				return nil, err
			}
			n := int64(0)
			for i := range l.items {
				if !m.equal(l.items[i], v, 0) {
					continue
				}
				if name == "index" {
					return int64(i), nil
				}
				n++
			}
			if name == "index" {
				return nil, fmt.Errorf("%s is not in the list", repr(v, 0))
			}
			return n, nil
		}}, true
	}
	return function{}, false
}

// textMethods need no arguments.
var textMethods = map[string]func(string) string{
	"upper": strings.ToUpper, "lower": strings.ToLower, "title": title, "capitalize": capitalize,
}

func stringMethod(s, name string) (function, bool) {
	if change, ok := textMethods[name]; ok {
		return plain(name, func(m *machine) (any, error) { return m.text(change(s)) }), true
	}
	call, ok := stringCalls[name]
	if !ok {
		return function{}, false
	}
	return function{name, func(m *machine, args callArgs) (any, error) {
		m.workOn(s)
		return call(m, s, args)
	}}, true
}

var stringCalls = map[string]func(m *machine, s string, args callArgs) (any, error){
	"strip":      strip(strings.Trim),
	"lstrip":     strip(strings.TrimLeft),
	"rstrip":     strip(strings.TrimRight),
	"startswith": affix(strings.HasPrefix),
	"endswith":   affix(strings.HasSuffix),
	"count":      stringCount,
	"find":       stringFind,
	"replace":    func(m *machine, s string, args callArgs) (any, error) { return filterReplace(m, s, args) },
	"split":      stringSplit,
	"join":       stringJoin,
	"zfill":      stringZfill,
	"isdigit": func(_ *machine, s string, _ callArgs) (any, error) {
		return s != "" && strings.Trim(s, "0123456789") == "", nil
	},
}

func strip(trim func(s, cut string) string) func(*machine, string, callArgs) (any, error) {
	return func(m *machine, s string, args callArgs) (any, error) {
		a, err := args.bind(param{"chars", nil})
		if err != nil {
			return nil, err
		}
		cut := syntax.Blanks + "\v\f"
		if a["chars"] != nil {
			cut = str(a["chars"])
		}
		return m.text(trim(s, cut))
	}
}

func affix(has func(s, part string) bool) func(*machine, string, callArgs) (any, error) {
	return func(_ *machine, s string, args callArgs) (any, error) {
		part, err := args.text()
		return has(s, part), err
	}
}

// text returns the only argument, which must be a text.
func (a callArgs) text() (string, error) {
	v, err := a.one()
	if err != nil {
		return "", err
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("the argument is %s, not text", describeValue(v))
	}
	return s, nil
}

func stringCount(_ *machine, s string, args callArgs) (any, error) {
	part, err := args.text()
	return int64(strings.Count(s, part)), err
}

func stringFind(_ *machine, s string, args callArgs) (any, error) {
	part, err := args.text()
	if err != nil {
		return nil, err
	}
	i := strings.Index(s, part)
	if i > 0 {
		return runeCount(s[:i]), nil
	}
	return int64(i), nil
}

func stringSplit(m *machine, s string, args callArgs) (any, error) {
	a, err := args.bind(param{"sep", nil}, param{"maxsplit", int64(-1)})
	if err != nil {
		return nil, err
	}
	n, err := whole(a["maxsplit"], "maxsplit")
	if err != nil {
		return nil, err
	}
	var parts []string
	switch sep, ok := a["sep"].(string); {
	case a["sep"] == nil && n < 0:
		parts = strings.Fields(s)
	case !ok || sep == "":
		return nil, fmt.Errorf("the separator must be text that is not empty")
	case n < 0:
		parts = strings.Split(s, sep)
	default:
		parts = strings.SplitN(s, sep, int(min(n, 1<<20))+1)
	}
	if err := m.pay(32 * len(parts)); err != nil {
		return nil, err
	}
	out := &list{}
	for _, part := range parts {
		out.items = append(out.items, part)
	}
	return out, nil
}

func stringJoin(m *machine, s string, args callArgs) (any, error) {
	v, err := args.one()
	if err != nil {
		return nil, err
	}
	items, err := m.items(v)
	if err != nil {
		return nil, err
	}
	for _, part := range items {
		if _, ok := part.(string); !ok {
			return nil, fmt.Errorf("%s is not text", describeValue(part))
		}
	}
	return filterJoin(m, &list{items: items}, callArgs{positional: []any{s}})
}

func stringZfill(m *machine, s string, args callArgs) (any, error) {
	v, err := args.one()
	if err != nil {
		return nil, err
	}
	width, err := whole(v, "width")
	if err != nil {
		return nil, err
	}
	pad := width - runeCount(s)
	if pad <= 0 {
		return s, nil
	}
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	if err := m.payTimes(1, pad); err != nil {
		return nil, err
	}
	return m.text(sign + strings.Repeat("0", int(pad)) + s)
}
