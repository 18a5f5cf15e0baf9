package yamltree

import (
	"math"
	"strconv"
	"strings"
)

// Resolve gives a scalar the value that X-Ray's YAML 1.1 reader gives it: nil, bool, int64, float64 or string. "1:30" stays
// text: YAML 1.1 would read it in base sixty, which is never meant in a node slice.
func Resolve(n Node) any {
	if n.Quoted {
		return n.Text
	}
	switch n.Text {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON":
		return true
	case "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF":
		return false
	}
	if i, ok := parseInt(n.Text); ok {
		return i
	}
	if f, ok := parseFloat(n.Text); ok {
		return f
	}
	return n.Text
}

// parseInt reads a decimal whole number, with _ between digits, or 0x, 0o and 0b. A leading zero is octal in YAML 1.1 and
// decimal in 1.2, so such a text stays text here.
func parseInt(s string) (int64, bool) {
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || digits == "" || digits[0] < '0' || digits[0] > '9' || strings.HasSuffix(digits, "_") {
		return 0, false
	}
	base := 10
	if len(digits) > 1 && digits[0] == '0' {
		switch digits[1] {
		case 'x', 'o', 'b':
			base = 0
		default:
			return 0, false
		}
	} else {
		s = strings.ReplaceAll(s, "_", "")
	}
	i, err := strconv.ParseInt(s, base, 64)
	return i, err == nil
}

// parseFloat reads a finite decimal number.
func parseFloat(s string) (float64, bool) {
	if s == "" || strings.Trim(s, "+-.0123456789eE") != "" || strings.Trim(s, "+-.eE") == "" || leadingZero(s) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && !math.IsInf(f, 0)
}

// leadingZero reports whether s is something like "010", which two versions of YAML read differently.
func leadingZero(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return len(s) > 1 && s[0] == '0' && !strings.ContainsAny(s, ".eE")
}

// IsNull reports whether n is present without a value.
func IsNull(n Node) bool { return n.Kind == Scalar && !n.Quoted && Resolve(n) == nil }

// AsNumber reads n as a number. Numeric text counts, since templates are often quoted.
func AsNumber(n Node) (float64, bool) {
	switch v := unquoted(n).(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// unquoted resolves a scalar as if it had no quotes; other nodes give nil.
func unquoted(n Node) any {
	if n.Kind != Scalar {
		return nil
	}
	n.Quoted = false
	n.Text = strings.TrimSpace(n.Text)
	return Resolve(n)
}

// AsInt reads n as a whole number; 3600.0, the result of a division in a template, counts as one.
func AsInt(n Node) (int64, bool) {
	switch v := unquoted(n).(type) {
	case int64:
		return v, true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), true
		}
	}
	return 0, false
}

// AsAny turns n into plain Go values: nil, string, int64, float64, bool, []any, map[string]any.
func AsAny(n Node) any {
	switch n.Kind {
	case Sequence:
		list := make([]any, 0, len(n.Items))
		for _, item := range n.Items {
			list = append(list, AsAny(item))
		}
		return list
	case Mapping:
		m := make(map[string]any, len(n.Items)/2)
		for i := 0; i+1 < len(n.Items); i += 2 {
			m[n.Items[i].Text] = AsAny(n.Items[i+1])
		}
		return m
	}
	return Resolve(n)
}
