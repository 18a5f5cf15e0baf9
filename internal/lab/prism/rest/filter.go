package rest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of filters.
const (
	filterBytesMax = 8 << 10
	filterDepthMax = 16
)

// parseFilter reads the subset of OData's $filter that clients use: eq, ne, gt, ge, lt, le, in, and, or, not, startswith, endswith,
// contains, and any() over lists.
//
//	name eq 'db' and startswith(cluster/name,'lab')
//	categories/any(c:c/extId eq '…')
func parseFilter(source string) (condition, error) {
	if len(source) > filterBytesMax {
		return nil, fmt.Errorf("longer than %d bytes", filterBytesMax)
	}
	words, err := tokens(source)
	if err != nil {
		return nil, err
	}
	f := &filter{words: words}
	c, err := f.or(0)
	if err == nil && f.at < len(f.words) {
		err = fmt.Errorf("unexpected %q", f.words[f.at])
	}
	return c, err
}

// tokens splits a filter into names, literals and punctuation. Strings keep their opening quote.
func tokens(s string) (out []string, err error) {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == ' ' || c == '\t':
			i++
		case strings.IndexByte("(),:", c) >= 0:
			out, i = append(out, string(c)), i+1
		case c == '\'':
			text, next, err := quoted(s, i)
			if err != nil {
				return nil, err
			}
			out, i = append(out, "'"+text), next
		default:
			end := i
			for end < len(s) && strings.IndexByte(" \t(),:'", s[end]) < 0 {
				end++
			}
			out, i = append(out, s[i:end]), end
		}
	}
	return out, nil
}

// quoted reads a string in which two quotes are one.
func quoted(s string, at int) (text string, next int, err error) {
	var b strings.Builder
	for i := at + 1; i < len(s); i++ {
		if s[i] != '\'' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '\'' {
			b.WriteByte('\'')
			i++
			continue
		}
		return b.String(), i + 1, nil
	}
	return "", 0, errors.New("a string has no end")
}

type filter struct {
	words []string
	at    int
	names []string // of any(): the variable in scope
}

func (f *filter) peek() string {
	if f.at < len(f.words) {
		return f.words[f.at]
	}
	return ""
}

func (f *filter) next() string {
	w := f.peek()
	f.at++
	return w
}

func (f *filter) want(w string) error {
	if got := f.next(); got != w {
		return fmt.Errorf("%q instead of %q", got, w)
	}
	return nil
}

func (f *filter) or(depth int) (condition, error) {
	left, err := f.and(depth)
	for err == nil && strings.EqualFold(f.peek(), "or") {
		f.at++
		var right condition
		a := left
		right, err = f.and(depth)
		left = func(o Object) bool { return a(o) || right(o) }
	}
	return left, err
}

func (f *filter) and(depth int) (condition, error) {
	left, err := f.term(depth)
	for err == nil && strings.EqualFold(f.peek(), "and") {
		f.at++
		var right condition
		a := left
		right, err = f.term(depth)
		left = func(o Object) bool { return a(o) && right(o) }
	}
	return left, err
}

func (f *filter) term(depth int) (condition, error) {
	if depth > filterDepthMax {
		return nil, fmt.Errorf("deeper than %d", filterDepthMax)
	}
	switch word := f.next(); strings.ToLower(word) {
	case "":
		return nil, errors.New("it ends too early")
	case "not":
		c, err := f.term(depth + 1)
		return func(o Object) bool { return !c(o) }, err
	case "(":
		c, err := f.or(depth + 1)
		if err != nil {
			return nil, err
		}
		return c, f.want(")")
	case "startswith", "endswith", "contains":
		return f.function(strings.ToLower(word))
	default:
		if path, ok := strings.CutSuffix(word, "/any"); ok {
			return f.any(path, depth)
		}
		return f.comparison(f.path(word))
	}
}

// path removes the variable of any().
func (f *filter) path(word string) string {
	for _, name := range f.names {
		if rest, ok := strings.CutPrefix(word, name+"/"); ok {
			return rest
		}
	}
	return word
}

func (f *filter) function(name string) (condition, error) {
	if err := f.want("("); err != nil {
		return nil, err
	}
	path := f.path(f.next())
	if err := f.want(","); err != nil {
		return nil, err
	}
	literal, err := literalOf(f.next())
	if err != nil {
		return nil, err
	}
	part := text(literal)
	test := map[string]func(s, part string) bool{"startswith": strings.HasPrefix, "endswith": strings.HasSuffix, "contains": strings.Contains}[name]
	return func(o Object) bool { return test(text(lookup(o, path)), part) }, f.want(")")
}

// any reads (c:c/extId eq 'x').
func (f *filter) any(path string, depth int) (condition, error) {
	if err := f.want("("); err != nil {
		return nil, err
	}
	f.names = append(f.names, f.next())
	if err := f.want(":"); err != nil {
		return nil, err
	}
	c, err := f.or(depth + 1)
	if err != nil {
		return nil, err
	}
	f.names = f.names[:len(f.names)-1]
	return func(o Object) bool {
		list, _ := lookup(o, path).([]Object)
		for _, one := range list {
			if c(one) {
				return true
			}
		}
		return false
	}, f.want(")")
}

func (f *filter) comparison(path string) (condition, error) {
	operator := strings.ToLower(f.next())
	if operator == "in" {
		return f.in(path)
	}
	tests := map[string]func(c int) bool{
		"eq": func(c int) bool { return c == 0 }, "ne": func(c int) bool { return c != 0 }, "gt": func(c int) bool { return c > 0 },
		"ge": func(c int) bool { return c >= 0 }, "lt": func(c int) bool { return c < 0 }, "le": func(c int) bool { return c <= 0 },
	}
	test, ok := tests[operator]
	if !ok {
		return nil, fmt.Errorf("unknown operator %q after %q", operator, path)
	}
	want, err := literalOf(f.next())
	if err != nil {
		return nil, err
	}
	return func(o Object) bool { return test(compare(lookup(o, path), want)) }, nil
}

func (f *filter) in(path string) (condition, error) {
	if err := f.want("("); err != nil {
		return nil, err
	}
	var all []any
	for {
		v, err := literalOf(f.next())
		if err != nil {
			return nil, err
		}
		all = append(all, v)
		if f.peek() != "," {
			break
		}
		f.at++
	}
	return func(o Object) bool {
		for _, v := range all {
			if compare(lookup(o, path), v) == 0 {
				return true
			}
		}
		return false
	}, f.want(")")
}

// literalOf reads 'text', 42, true, null, or the name of an enumeration such as Schema.Enums.PowerState'ON', of which the text counts.
func literalOf(word string) (any, error) {
	switch {
	case word == "":
		return nil, errors.New("a value is missing")
	case word[0] == '\'':
		return word[1:], nil
	case word == "null":
		return nil, nil
	case word == "true" || word == "false":
		return word == "true", nil
	}
	if n, err := strconv.ParseFloat(word, 64); err == nil {
		return n, nil
	}
	return word, nil
}
