package fiojob

import (
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// LiteralNumber and LiteralTime are what this package says that fio itself reads.
func LiteralNumber(text string, kb int64) (string, bool) {
	n, ok := syntax.ExactNumber(text, kb)
	return strconv.FormatInt(n.Value, 10), ok
}

func LiteralTime(text string, unit time.Duration) (time.Duration, bool) {
	n, ok := syntax.ExactTime(text, unit)
	return time.Duration(n.Value) * time.Microsecond, ok
}

// OptionNames returns all names and aliases.
func OptionNames() []string { return optionNames() }
