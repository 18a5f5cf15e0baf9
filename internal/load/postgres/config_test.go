package postgres_test

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/postgres"
)

// Sizes may be written as everywhere else in a scenario. PostgreSQL knows kB, MB and GB only, and counts them in powers of 1024.
func TestSizes(t *testing.T) {
	for given, want := range map[string]string{
		"512MiB": "512MB", "2GiB": "2048MB", "1.5GB": "1536MB", "512mb": "512MB", "96k": "96kB", "1000B": "1000B", "8GB": "8GB", "0": "0",
	} {
		o := &load.Options{Values: map[string]string{"shared_buffers": given}}
		c := postgres.ReadConfig(o, &load.Workload{Options: o.Values}, nil)
		if got := c.Setting("shared_buffers"); got != want {
			t.Errorf("%s: PostgreSQL is started with %q, want %q", given, got, want)
		}
	}
	for given, want := range map[string]string{"4096": "no unit", "much": "not a size", "2XB": "not a size", "-2": "not a size"} {
		o := &load.Options{Values: map[string]string{"work_mem": given}}
		postgres.ReadConfig(o, &load.Workload{Options: o.Values}, nil)
		if err := o.Err("w", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}
