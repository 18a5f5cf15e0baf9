package load_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// "50" are 50 bytes, where a unit was left out; a file size in bytes is one.
func TestDataSize(t *testing.T) {
	for text, want := range map[string]int64{
		"50": 0, "50.5": 0, "100000": 0, "": 0, "fifty": 0,
		"1048576": unit.MiB, "107374182400": 100 * unit.GiB, "50GiB": 50 * unit.GiB, "50 GiB": 50 * unit.GiB, "512B": 512, "0": 0, "0GiB": 0, "0.0001B": 0, "16K": 16 * unit.KiB,
	} {
		if got, err := load.DataSize(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestChoice(t *testing.T) {
	words := []string{"oltp_read_only", "oltp_read_write", "cpu"}
	for value, want := range map[string]string{
		"-":              `options of workload "W": test is missing: one of oltp_read_only, oltp_read_write, cpu`,
		"oltp_readwrite": `options of workload "W": test: "oltp_readwrite" is unknown (did you mean "oltp_read_write"?)`,
		"disk":           `options of workload "W": test: "disk" is not one of oltp_read_only, oltp_read_write, cpu`,
	} {
		o := load.Options{Values: map[string]string{"test": value}}
		if value == "-" {
			o.Values = nil
		}
		o.Choice("test", words)
		if err := o.Err("W", ""); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", value, err, want)
		}
	}
}
