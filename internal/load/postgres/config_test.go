package postgres_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/postgres"
	"github.com/braggdev/bragg/internal/testreq"
)

// Sizes may be written as everywhere else in a scenario. PostgreSQL knows kB, MB and GB only, and counts them in powers of 1024.
func TestSizes(t *testing.T) {
	for given, want := range map[string]string{
		"512MiB": "512MB", "2GiB": "2048MB", "1.5GB": "1536MB", "512mb": "512MB", "1000k": "1000kB", "200000B": "200000B", "8GB": "8GB",
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

// A value that no server takes is refused before there is one.
func TestParameters(t *testing.T) {
	loadtest.CheckValues(t, map[string]loadtest.Values{
		"jit": {"on off true false yes no 0 1 ON", "1e30 maybe 2"}, "huge_pages": {"try on", "always"},
		"shared_buffers": {"128kB 16MB 2TiB", "-1 0 1kB 100TB 4096 -2GB"}, "wal_buffers": {"-1 16MB", "-2 3GB"},
		"work_mem": {"64kB 4MB", "-1 0 1kB"}, "max_wal_size": {"1GB 32MB", "-1 0 16MB"}, "backend_flush_after": {"0 256kB", "-1 1GB"},
		"checkpoint_timeout": {"30s 5min 1d", "0 -1 1s 2d 5 -5min"}, "commit_delay": {"0 100us", "-1 1s 100"}, "bgwriter_delay": {"10ms", "5ms 0"},
		"checkpoint_completion_target": {"0 0.9 1", "1.1 -0.1 NaN high"}, "random_page_cost": {"1.1 4", "-1 NaN cheap"}, "effective_io_concurrency": {"0 200", "-1 1e30"},
		"synchronous_commit": {"off remote_apply", "never"}, "wal_sync_method": {"fdatasync", "sync"}, "wal_compression": {"lz4 on", "gzip"},
	}, func(o *load.Options, w *load.Workload) { postgres.ReadConfig(o, w, nil) })
}

// The bounds are those of the installed server, or wider: other versions may have others.
func TestBoundsOfTheServer(t *testing.T) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		testreq.Skip(t, "no postgres (make deps)")
	}
	described, err := exec.Command(found[len(found)-1], "--describe-config").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(described)) {
		fields := strings.Split(line, "\t")
		low, high, known := postgres.Bounds(fields[0])
		if !known || len(fields) < 7 {
			continue
		}
		seen++
		least, noLeast := strconv.ParseFloat(fields[5], 64)
		most, noMost := strconv.ParseFloat(fields[6], 64)
		narrower := slices.Contains([]string{"max_wal_size", "min_wal_size", "wal_buffers"}, fields[0]) // two segments; and -1 is a word
		if noLeast == nil && noMost == nil && (low > least && !narrower || high > 0 && high < most) {
			t.Errorf("%s is from %v to %v, and refused below %v or above %v", fields[0], least, most, low, high)
		}
	}
	if seen != len(postgres.SettingNames) {
		t.Errorf("the server describes %d of %d parameters", seen, len(postgres.SettingNames))
	}
}
