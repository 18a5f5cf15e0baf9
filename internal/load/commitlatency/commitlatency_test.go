package commitlatency_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/commitlatency"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/testreq"
)

const helperDisk = "BRAGG_COMMIT_TEST_DISK"

func TestMain(m *testing.M) {
	if disk := os.Getenv(helperDisk); disk != "" {
		loadtest.BeHelper(commitlatency.Generator{}, load.Workload{Name: "w", IntervalLength: 100 * time.Millisecond,
			Devices: []load.Device{{Name: "/dev/sdb", Path: disk, SizeBytes: 8 << 30}}})
	}
	code := m.Run()
	fills.Remove()
	os.Exit(code)
}

// workload returns a load on disks that are files, without a database.
func workload(t testing.TB, options map[string]string) load.Workload {
	t.Helper()
	w := load.Workload{Name: "contract", Group: "group", VM: "group-0001", Instance: 3, Generator: commitlatency.Name, Seed: 42, Options: options}
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

func needPostgreSQL(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts PostgreSQL")
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres"); len(found) == 0 {
		testreq.Skip(t, "no postgres (make deps)")
	}
}

var fills loadtest.Fills

// prefilled returns a load with an empty database. Those that have the disks of another test begin with its data.
func prefilled(t testing.TB, options map[string]string) load.Workload {
	t.Helper()
	needPostgreSQL(t)
	w := workload(t, options)
	fills.Fill(t, options["wal_disk"], filepath.Dir(w.Devices[0].Path), func() {
		fill := w
		fill.Prefill = true
		var log loadtest.Log
		if err := loadtest.Drive(t.Context(), commitlatency.Generator{}, fill, &log); err != nil {
			t.Fatal(err)
		}
		loadtest.CheckIntervals(t, fill, log.Intervals())
	})
	return w
}

func TestContract(t *testing.T) {
	w := prefilled(t, map[string]string{"wal_disk": "/dev/sdc"})
	loadtest.RunAny(t, loadtest.Subject{Generator: commitlatency.Generator{}, Endless: func(testing.TB) load.Workload { return w }})
}

func TestSimulation(t *testing.T) {
	loadtest.RunAny(t, loadtest.Subject{Generator: commitlatency.Simulation, Endless: func(t testing.TB) load.Workload { return workload(t, nil) }})
}

// Each wait is there, and each contains the ones below it.
func TestWaits(t *testing.T) {
	w := prefilled(t, nil)
	w.Runtime, w.IntervalLength = 2*time.Second, 500*time.Millisecond
	in, err := commitlatency.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	engine := in.(load.Describer).Engine()
	var log loadtest.Log
	if err := in.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	ivs := log.Intervals()
	loadtest.CheckIntervals(t, w, ivs)
	sum := loadtest.Add(ivs)
	median := map[string]float64{}
	for i, name := range engine.Operations {
		if sum.Directions[i].Operations == 0 {
			t.Fatalf("no %s", name)
		}
		median[name] = sum.Directions[i].Service.Quantile(0.5)
	}
	if median["commit"] < median["commit-async"] || median["commit-async"] < median["round-trip"] || median["fdatasync"] == 0 {
		t.Errorf("medians %v", median)
	}
	gauges := ivs[1].Gauges
	if len(gauges) != len(engine.Gauges) || !(gauges[0] > 0) || !(gauges[2] > 0) {
		t.Errorf("gauges %v of %v", gauges, engine.Gauges)
	}
}

func TestRefusals(t *testing.T) {
	for want, options := range map[string]map[string]string{
		"is not one of":      {"operations": "commit vacuum"},
		"none is named":      {"operations": " "},
		"needs the disk":     {"operations": "fdatasync", "endpoint": "x"},
		"number from 1":      {"row_bytes": "0"},
		`no option "rowbyte`: {"rowbytes": "10"},
		"has no unit":        {"shared_buffers": "4096"},
	} {
		_, err := commitlatency.Generator{}.Plan(workload(t, options))
		var faults load.OptionFaults
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &faults) {
			t.Errorf("%v: %v, want %q", options, err, want)
		}
	}
	if _, err := (commitlatency.Generator{}).Prepare(t.Context(), workload(t, nil)); diag.ExitCode(err) != diag.ExitData && diag.ExitCode(err) != diag.ExitUnavailable {
		t.Errorf("without a prefill: %v", err)
	}
}

func TestProgramsDieWithUs(t *testing.T) {
	w := prefilled(t, nil)
	disk := w.Devices[0].Path
	loadtest.Orphans(t, []string{helperDisk + "=" + disk}, 5, func() {}, func() (users []string) {
		links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, filepath.Dir(disk)) {
				users = append(users, link)
			}
		}
		return users
	})
}

// Tables of an endpoint are replaced for all VMs, unless each has an endpoint of its own.
func TestSharedEndpoint(t *testing.T) {
	for name, want := range map[string]string{"rds": `the data of endpoint "rds"`, "rds-{n}": ""} {
		w := workload(t, map[string]string{"endpoint": name})
		w.Ordinal, w.Prefill = 2, true
		p, err := commitlatency.Generator{}.Plan(w)
		if err != nil || p.Replaces != want || want == "" && !strings.Contains(p.Program.Data[0], `"rds-3"`) {
			t.Errorf("%s: %q, %v, %v", name, p.Replaces, p.Program, err)
		}
	}
}
