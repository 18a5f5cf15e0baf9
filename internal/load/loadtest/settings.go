package loadtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load"
)

// Values of one option of a workload, with blanks between them: those that are taken, and those that are refused.
type Values [2]string

// CheckValues wants faults of the bad values of options, which name option and value, and none of the good ones.
func CheckValues(t *testing.T, options map[string]Values, read func(*load.Options, *load.Workload)) {
	t.Helper()
	for name, values := range options {
		check := func(value string) error {
			o := &load.Options{Values: map[string]string{name: value}}
			read(o, &load.Workload{Options: o.Values, Devices: []load.Device{{Name: "/dev/sdb"}}})
			return o.Err("w", "")
		}
		for _, value := range strings.Fields(values[0]) {
			if err := check(value); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, value := range strings.Fields(values[1]) {
			var faults load.OptionFaults
			if err := check(value); !errors.As(err, &faults) || faults[0].Option != name || !strings.Contains(faults[0].Text, value) {
				t.Errorf("%s: %s: %v", name, value, err)
			}
		}
	}
}
