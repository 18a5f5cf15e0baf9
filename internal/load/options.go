package load

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/unit"
)

// Options reads the options of a workload and collects everything that is wrong with them.
type Options struct {
	Values map[string]string
	faults OptionFaults
}

// OptionFault is what is wrong with one option.
type OptionFault struct{ Option, Text string }

// OptionFaults are what is wrong with the options of a workload, as the cause of an error: a planner marks each option.
type OptionFaults []OptionFault

func (f OptionFaults) Error() string {
	texts := make([]string, len(f))
	for i := range f {
		texts[i] = f[i].Text
	}
	return strings.Join(texts, "; ")
}

// Fault notes what is wrong with an option. The text has its name.
func (o *Options) Fault(option, format string, args ...any) {
	o.faults = append(o.faults, OptionFault{option, fmt.Sprintf(format, args...)})
}

// Integer reads a number from 1 to most, or returns the fallback if the option is not given.
func (o *Options) Integer(name string, fallback, most int) int {
	text, given := o.Values[name]
	if !given {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		o.Fault(name, "%s: %q is not a number from 1 to %d", name, text, most)
		return fallback
	}
	return n
}

// Choice notes that an option is missing or has none of the words that it may have.
func (o *Options) Choice(name string, words []string) {
	text, given := o.Values[name]
	near := diag.Nearest(text, words)
	switch {
	case !given:
		o.Fault(name, "%s is missing: one of %s", name, strings.Join(words, ", "))
	case near != "":
		o.Fault(name, "%s: %q is unknown (did you mean %q?)", name, text, near)
	default:
		o.Fault(name, "%s: %q is not one of %s", name, text, strings.Join(words, ", "))
	}
}

// DataSize reads the size of a data set, which is not 0. It needs a unit below a MiB: "50" are 50 bytes, and never what was meant.
func DataSize(text string) (int64, error) {
	n, err := unit.ParseBytes(text)
	if err == nil && n == 0 {
		return 0, errors.New("no data")
	}
	if err == nil && n < unit.MiB && strings.Trim(text, "0123456789. ") == "" {
		return 0, errors.New("no unit")
	}
	return n, err
}

// Err is nil if no option of the workload is wrong.
func (o *Options) Err(workload, hint string) error {
	if len(o.faults) == 0 {
		return nil
	}
	return &diag.Error{Code: "bad-generator-option", Exit: diag.ExitData, Err: o.faults, Hint: hint,
		Message: fmt.Sprintf("options of workload %q", workload)}
}
