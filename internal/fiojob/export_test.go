package fiojob

import "time"

// LiteralNumber and LiteralTime are what this package says that fio itself reads.
func LiteralNumber(text string, kb int64) (string, bool) {
	n, err := readNumber(text, kb)
	if err != nil || n.isPct {
		return "", false
	}
	negative, digits, rest := splitNumber(text)
	return literalNumber(negative, digits, rest, kb), true
}

func LiteralTime(text string, unit time.Duration) (time.Duration, bool) {
	_, digits, rest := splitNumber(text)
	d, _ := literalTime(digits, rest, unit)
	_, _, err := readTime(text, unit)
	return d, err == nil
}

// OptionNames returns all names and aliases.
func OptionNames() []string { return optionNames() }

// Canonical resolves an alias.
func Canonical(name string) string { return canonical(name) }
