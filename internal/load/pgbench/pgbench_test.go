package pgbench_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/pgbench"
	"github.com/braggdev/bragg/internal/testreq"
)

// needPostgreSQL skips a test where Debian's package postgresql is missing.
func needPostgreSQL(t testing.TB) {
	t.Helper()
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench"); len(found) == 0 {
		testreq.Skip(t, "no pgbench (make deps)")
	}
}

// workload returns a load on disks that are files.
func workload(t testing.TB, options map[string]string) load.Workload {
	t.Helper()
	w := load.Workload{Name: "contract", Group: "group", VM: "group-0001", Instance: 3, Generator: pgbench.Name, Seed: 42, Options: options}
	dir := t.TempDir()
	for _, name := range []string{"sdb", "sdc"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w.Devices = append(w.Devices, load.Device{Name: "/dev/" + name, Path: path, SizeBytes: 8 << 30})
	}
	return w
}

var fills loadtest.Fills

// prefilled returns a load whose database was initialised. Those that have the scale and disks of another test begin with its data.
func prefilled(t testing.TB, options map[string]string) load.Workload {
	t.Helper()
	w := workload(t, options)
	fills.Fill(t, options["scale"]+" "+options["wal_disk"], filepath.Dir(w.Devices[0].Path), func() {
		fill := w
		fill.Prefill = true
		var log loadtest.Log
		if err := loadtest.Drive(t.Context(), pgbench.Generator{}, fill, &log); err != nil {
			t.Fatal(err)
		}
		loadtest.CheckIntervals(t, fill, log.Intervals())
	})
	return w
}

func TestContract(t *testing.T) {
	needPostgreSQL(t)
	for name, options := range map[string]map[string]string{
		"closed":    {"scale": "2", "clients": "4", "script": "tpcb-like"},
		"scheduled": {"scale": "2", "clients": "4", "script": "select-only@3 simple-update", "rate": "400", "latency_limit": "200ms", "wal_disk": "/dev/sdc"},
	} {
		t.Run(name, func(t *testing.T) {
			w := prefilled(t, options)
			loadtest.RunAny(t, loadtest.Subject{Generator: pgbench.Generator{}, ConnectsFirst: true, Endless: func(testing.TB) load.Workload { return w }})
		})
	}
}

func TestSimulation(t *testing.T) {
	for name, options := range map[string]map[string]string{
		"closed": {"scale": "2"}, "scheduled": {"scale": "2", "rate": "50"},
	} {
		t.Run(name, func(t *testing.T) {
			loadtest.RunAny(t, loadtest.Subject{Generator: pgbench.Simulation, Endless: func(t testing.TB) load.Workload { return workload(t, options) }})
		})
	}
}
