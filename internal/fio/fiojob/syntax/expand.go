package syntax

import (
	"errors"
	"strconv"
	"strings"
)

// ExpandEnvironment replaces ${NAME}. As in fio, an unset variable becomes an empty text; its name is returned.
func ExpandEnvironment(text string, lookup func(string) (string, bool)) (expanded string, missing []string) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String(), missing
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			b.WriteString("${" + rest)
			return b.String(), missing
		}
		value := ""
		if lookup != nil {
			value, _ = lookup(name)
		}
		if value == "" {
			missing = append(missing, name)
		}
		if b.Len()+len(value) > TextBytesMax {
			return b.String(), missing
		}
		b.WriteString(value)
		text = after
	}
}

var errKeyword = errors.New("the value of a keyword is not known here")

// expandKeywords replaces keywords such as $ncpus by their numbers, 0 if one is not known, and then evaluates the
// arithmetic, for which fio runs bc.
func expandKeywords(text string, keywords map[string]int64) (string, error) {
	found := false
	for word, value := range keywords {
		if !strings.Contains(text, word) {
			continue
		}
		if value <= 0 {
			return "", errKeyword
		}
		text = strings.ReplaceAll(text, word, strconv.FormatInt(value, 10))
		found = true
	}
	if !found || !strings.ContainsAny(text, "+-*/") {
		return text, nil
	}
	c := calculator{text: text}
	value, err := c.sum(0)
	if err != nil || strings.TrimSpace(c.text) != "" {
		return "", errors.New("want a sum of whole numbers")
	}
	return strconv.FormatInt(value, 10), nil
}

// calculator evaluates + - * / % and parentheses over integers, from left to right; division drops the fraction.
type calculator struct{ text string }

const calculatorDepthMax = 32

func (c *calculator) sum(depth int) (int64, error) {
	left, err := c.product(depth)
	for err == nil {
		var right int64
		switch c.next("+-") {
		case '+':
			right, err = c.product(depth)
			left += right
		case '-':
			right, err = c.product(depth)
			left -= right
		default:
			return left, nil
		}
	}
	return 0, err
}

func (c *calculator) product(depth int) (int64, error) {
	left, err := c.atom(depth)
	for err == nil {
		var right int64
		switch c.next("*/%") {
		case '*':
			right, err = c.atom(depth)
			left *= right
		case '/':
			if right, err = c.divisor(depth); err == nil {
				left /= right
			}
		case '%':
			if right, err = c.divisor(depth); err == nil {
				left %= right
			}
		default:
			return left, nil
		}
	}
	return 0, err
}

func (c *calculator) divisor(depth int) (int64, error) {
	v, err := c.atom(depth)
	if err == nil && v == 0 {
		err = errors.New("division by zero")
	}
	return v, err
}

func (c *calculator) atom(depth int) (int64, error) {
	if depth > calculatorDepthMax {
		return 0, errNumber
	}
	switch c.next("(-") {
	case '(':
		v, err := c.sum(depth + 1)
		if err == nil && c.next(")") == 0 {
			err = errNumber
		}
		return v, err
	case '-':
		v, err := c.atom(depth + 1)
		return -v, err
	}
	end := 0
	for end < len(c.text) && c.text[end] >= '0' && c.text[end] <= '9' {
		end++
	}
	v, err := strconv.ParseInt(c.text[:end], 10, 64)
	c.text = c.text[end:]
	return v, err
}

// next consumes the first character if it is one of characters, else it returns 0.
func (c *calculator) next(characters string) byte {
	c.text = strings.TrimLeft(c.text, " \t")
	if c.text == "" || strings.IndexByte(characters, c.text[0]) < 0 {
		return 0
	}
	b := c.text[0]
	c.text = c.text[1:]
	return b
}
