package hammerdb_test

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/hammerdb"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/testreq"
)

const (
	helperDisk   = "BRAGG_HAMMERDB_TEST_DISK"
	helperServer = "BRAGG_HAMMERDB_TEST_SERVER"
	helperSets   = "BRAGG_HAMMERDB_TEST_SETS" // of a TPROC-H
)

func TestMain(m *testing.M) {
	if disk := os.Getenv(helperDisk); disk != "" {
		options := map[string]string{"warehouses": "1", "users": "1", "server": os.Getenv(helperServer)}
		if sets := os.Getenv(helperSets); sets != "" {
			options = queryOptions(os.Getenv(helperServer), map[string]string{"query_sets": sets})
		}
		loadtest.BeHelper(hammerdb.Generator{}, load.Workload{Name: "w", IntervalLength: 100 * time.Millisecond, Options: options,
			Devices: []load.Device{{Name: "/dev/sdb", Path: disk, SizeBytes: 8 << 30}}})
	}
	os.Exit(m.Run())
}

// played is a program that plays the role of HammerDB on a real PostgreSQL: no package has HammerDB. The soak has the same tests with the
// real program.
func played(t testing.TB) string {
	t.Helper()
	home, err := filepath.Abs("testdata/played")
	if err != nil {
		t.Fatal(err)
	}
	return home
}

func workload(t testing.TB, options map[string]string) load.Workload {
	t.Helper()
	w := load.Workload{Name: "contract", Group: "group", VM: "group-0001", Instance: 3, Generator: hammerdb.Name, Seed: 42,
		Options: map[string]string{"warehouses": "1", "users": "1"}}
	maps.Copy(w.Options, options)
	disk := filepath.Join(t.TempDir(), "sdb")
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.Devices = []load.Device{{Name: "/dev/sdb", Path: disk, SizeBytes: 8 << 30}}
	return w
}

// prefilled returns a load whose database was built by the installation in home.
func prefilled(t testing.TB, home, server string) load.Workload {
	t.Helper()
	return prefilledBy(t, home, server, map[string]string{"server": server})
}

// needServer skips a test where the program of a server is missing.
func needServer(t testing.TB, server string) {
	t.Helper()
	program := map[string]string{"postgresql": "/usr/lib/postgresql/*/bin/postgres", "mariadb": "/usr/sbin/mariadbd", "mysql": "/usr/sbin/mariadbd"}[server]
	if found, _ := filepath.Glob(program); len(found) == 0 {
		testreq.Skip(t, "no "+program+" (make deps)")
	}
}

func prefilledBy(t testing.TB, home, server string, options map[string]string) load.Workload {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server")
	}
	needServer(t, server)
	t.Setenv(hammerdb.HomeVariable, home)
	w := workload(t, options)
	if options["test"] != "" {
		delete(w.Options, "warehouses")
	}
	fill := w
	fill.Prefill = true
	var log loadtest.Log
	if err := loadtest.Drive(t.Context(), hammerdb.Generator{}, fill, &log); err != nil {
		t.Fatal(err)
	}
	loadtest.CheckIntervals(t, fill, log.Intervals())
	return w
}

func TestContract(t *testing.T) {
	for _, server := range []string{"postgresql", "mysql"} {
		t.Run(server, func(t *testing.T) {
			w := prefilled(t, played(t), server)
			loadtest.RunAny(t, subject(w))
			checkOrphans(t, w)
		})
	}
}

// A load that ends by itself has the share of new orders at its end, for the audit. One that is stopped does not declare it.
func TestShareOfResult(t *testing.T) {
	w := prefilled(t, played(t), "mysql")
	w.Options["all_warehouses"] = "true" // with which the played program ends by itself
	w.Runtime, w.IntervalLength = time.Minute, 200*time.Millisecond
	p, err := hammerdb.Generator{}.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	if err := loadtest.Drive(t.Context(), hammerdb.Generator{}, w, &log); err != nil {
		t.Fatal(err)
	}
	checkShare(t, p, log.Intervals(), 0.4, 0.4)
	all := log.Intervals()
	if sum := loadtest.Add(all).Directions[0].Operations; sum != 40 || all[len(all)-1].Directions[0].Operations == 0 {
		t.Errorf("%d new orders, and the last of %d intervals has %d: the load ends with its test", sum, len(all), all[len(all)-1].Directions[0].Operations)
	}
	w.Runtime = 59 * time.Second
	if p, err = (hammerdb.Generator{}).Plan(w); err != nil || p.Engine.GaugeMeant(interval.GaugeNewOrderShare) >= 0 {
		t.Errorf("a load that is stopped declares the share: %+v, %v", p.Engine, err)
	}
}

// checkShare looks for a share of new orders in the last interval, and only there.
func checkShare(t *testing.T, p load.Plan, all []interval.Interval, least, most float64) {
	t.Helper()
	n := p.Engine.GaugeMeant(interval.GaugeNewOrderShare)
	if n < 0 || len(all) < 2 {
		t.Fatalf("gauge %d of %+v, %d intervals", n, p.Engine.Gauges, len(all))
	}
	for i, iv := range all {
		share := iv.Gauges[n]
		if last := i == len(all)-1; last && !(share >= least && share <= most) || !last && !math.IsNaN(share) {
			t.Errorf("interval %d of %d has a share of %v", i, len(all), share)
		}
	}
}

// subject is a load whose operations have no latencies, not even at the end.
func subject(w load.Workload) loadtest.Subject {
	return loadtest.Subject{Generator: hammerdb.Generator{}, LatencyAtEnd: true, Endless: func(testing.TB) load.Workload { return w }}
}

// Installations that cannot be used are refused before the load, with what is wrong.
func TestUnusable(t *testing.T) {
	if testing.Short() {
		t.Skip("needs PostgreSQL")
	}
	for want, says := range map[string]string{
		"is version 4.11":         "echo HammerDB CLI v4.11; echo Pgtcl is version 2.1.1: usage",
		"cannot load its library": "echo HammerDB CLI v4.12; echo cannot find package Pgtcl; exit 1",
		"prints no version":       "echo While loading module tclreadline; exit 1",
		"functions need":          "echo HammerDB CLI v4.12; echo 'Pgtcl is version 2.7.7: wrong # args: should be \"pg_exec_prepared connection statementName [parm...]\"'",
	} {
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, "hammerdbcli"), []byte("#!/bin/sh\n"+says+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv(hammerdb.HomeVariable, home)
		w := workload(t, map[string]string{"transactions": "functions"})
		w.Prefill = true
		if _, err := (hammerdb.Generator{}).Prepare(t.Context(), w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// checkOrphans kills a process that runs a load, and finds nothing of it left.
func checkOrphans(t *testing.T, w load.Workload) {
	t.Helper()
	disk := w.Devices[0].Path
	loadtest.Orphans(t, []string{helperDisk + "=" + disk, helperServer + "=" + w.Options["server"], helperSets + "=" + w.Options["query_sets"]}, 5, func() {}, func() (users []string) {
		links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, filepath.Dir(disk)) {
				users = append(users, link)
			}
		}
		return users
	})
}

func TestSimulation(t *testing.T) {
	loadtest.RunAny(t, loadtest.Subject{Generator: hammerdb.Simulation, Endless: func(t testing.TB) load.Workload { return workload(t, nil) }})
}

func TestRefusals(t *testing.T) {
	for want, options := range map[string]map[string]string{
		"exclude each other":    {"data": "1GiB"},
		"number from 1":         {"users": "0"},
		"not procedures or":     {"transactions": "views"},
		"has procedures only":   {"transactions": "functions", "server": "mysql"},
		`did you mean "oracle`:  {"server": "oracel"},
		"is not one of postgre": {"server": "db2"},
		"is not a size":         {"data": "50"},
		`no option "wal_disk"`:  {"wal_disk": "/dev/sdb", "server": "mariadb"},
		"not true or false":     {"key_and_think": "perhaps"},
		`no option "wharehouse`: {"wharehouses": "10"},
		"has no unit":           {"shared_buffers": "4096"},
	} {
		_, err := hammerdb.Generator{}.Plan(workload(t, options))
		var faults load.OptionFaults
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &faults) {
			t.Errorf("%v: %v, want %q", options, err, want)
		}
	}
}

// A machine without HammerDB says where it was looked for and how to get it.
func TestMissing(t *testing.T) {
	empty := t.TempDir()
	for home, want := range map[string]string{empty: "has no hammerdbcli", "hammerdb": "not a whole path"} {
		t.Setenv(hammerdb.HomeVariable, home)
		_, err := hammerdb.Generator{}.Prepare(t.Context(), workload(t, nil))
		if err == nil || !strings.Contains(err.Error(), want) || diag.ExitCode(err) != diag.ExitUnavailable {
			t.Errorf("%s: %v, want %q", home, err, want)
		}
	}
}

// HammerDB measures whole minutes: ramp-up and test fit into the runtime.
func TestRuntimes(t *testing.T) {
	for runtime, want := range map[time.Duration][]string{
		0:                {"pg_rampup 2;", "pg_duration 5;"},
		30 * time.Second: {"pg_rampup 0;", "pg_duration 1;"},
		90 * time.Second: {"pg_rampup 0;", "pg_duration 1;"},
		2 * time.Minute:  {"pg_rampup 1;", "pg_duration 1;"},
		10 * time.Minute: {"pg_rampup 2;", "pg_duration 8;"},
	} {
		w := workload(t, nil)
		w.Runtime = runtime
		p, err := hammerdb.Generator{}.Plan(w)
		if err != nil {
			t.Fatal(err)
		}
		command := p.Program.Commands[len(p.Program.Commands)-1]
		for _, text := range want {
			if !strings.Contains(command, text) {
				t.Errorf("%v: %q is not in %s", runtime, text, command)
			}
		}
	}
}

// A HammerDB that crashes is said to have crashed.
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	needServer(t, "postgresql")
	home, real := t.TempDir(), filepath.Join(played(t), "hammerdbcli")
	text := "#!/bin/sh\nif grep -q '^buildschema' \"$3\"; then\n\techo 'Vuser 1 created - WAIT IDLE'\n\tkill -SEGV $$\nfi\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(home, "hammerdbcli"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(hammerdb.HomeVariable, home)
	w := workload(t, map[string]string{"server": "postgresql"})
	w.Prefill = true
	err := loadtest.Drive(t.Context(), hammerdb.Generator{}, w, &loadtest.Log{})
	if err == nil || !strings.Contains(err.Error(), "its output ends before all users did: signal: segmentation fault") || !strings.Contains(err.Error(), "Vuser 1 created") {
		t.Error(err)
	}
}
