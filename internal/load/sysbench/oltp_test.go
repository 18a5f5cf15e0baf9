package sysbench_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/sysbench"
	"github.com/braggdev/bragg/internal/testreq"
)

// servers are the kinds of servers with a program of each.
var servers = map[string]string{"postgresql": "psql", "mariadb": "mariadb"}

// eachServerAlone runs a test for every kind of server, one after the other: the contract counts goroutines and open files.
func eachServerAlone(t *testing.T, test func(t *testing.T, server string)) {
	t.Helper()
	needSysbench(t)
	for server, client := range servers {
		t.Run(server, func(t *testing.T) {
			testreq.Program(t, client)
			test(t, server)
		})
	}
}

// eachServer runs a test for every kind of server, at the same time: they mostly wait.
func eachServer(t *testing.T, test func(t *testing.T, server string)) {
	t.Helper()
	eachServerAlone(t, func(t *testing.T, server string) {
		t.Parallel()
		test(t, server)
	})
}

func tables(server string, more ...string) map[string]string {
	options := map[string]string{"test": "oltp_read_write", "server": server, "tables": "2", "table_size": "1000", "threads": "2"}
	for i := 0; i < len(more); i += 2 {
		options[more[i]] = more[i+1]
	}
	return options
}

// prepared is a workload whose tables exist. The user of the server can reach their folder.
func prepared(t testing.TB, options map[string]string) load.Workload {
	t.Helper()
	w := prefilled(t, options)
	w.Devices[0].SizeBytes = 4 << 30
	return w
}

// drive runs a workload and returns the sum of its intervals, what its programs wrote, and sysbench's own summary.
func drive(t *testing.T, w load.Workload) (loadtest.Sum, string, sysbench.Summary) {
	t.Helper()
	in, err := sysbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	err = in.Run(t.Context(), &log)
	said := ""
	for _, o := range in.(load.Teller).Outputs() {
		if !o.Valid() {
			t.Errorf("output %q of %d bytes", o.Name, len(o.Text))
		}
		said += o.Text
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	loadtest.CheckOrder(t, w, log.Intervals())
	if w.Prefill {
		return loadtest.Add(log.Intervals()), said, sysbench.Summary{}
	}
	own, err := sysbench.ParseSummary(in.(load.Teller).Outputs()[0].Text)
	if err != nil {
		t.Fatal(err)
	}
	return loadtest.Add(log.Intervals()), said, own
}

func TestDatabaseContract(t *testing.T) {
	eachServerAlone(t, func(t *testing.T, server string) {
		w := prepared(t, tables(server))
		endless := func(testing.TB) load.Workload { return w }
		loadtest.RunAny(t, loadtest.Subject{Generator: sysbench.Generator{}, LatencyAtEnd: true, Endless: endless})
	})
}

// With a rate, latencies count from the schedule, which is sysbench's own whatever the server is.
func TestDatabaseContractOfRate(t *testing.T) {
	needSysbench(t)
	testreq.Program(t, "psql")
	w := prepared(t, tables("postgresql"))
	w.Options = tables("postgresql", "rate", "200")
	endless := func(testing.TB) load.Workload { return w }
	loadtest.RunAny(t, loadtest.Subject{Generator: sysbench.Generator{}, LatencyAtEnd: true, Endless: endless})
}

// TestQueries: the totals of every test are those that sysbench prints itself, and of each kind of query as many ran as its transactions have.
func TestQueries(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		w := prepared(t, tables(server))
		w.Runtime = time.Second
		for test, each := range map[string][2]uint64{ // reads and writes of a transaction
			"oltp_read_write": {14, 4}, "oltp_read_only": {14, 0}, "oltp_write_only": {0, 4}, "oltp_point_select": {1, 0}, "oltp_update_index": {0, 1},
			"oltp_update_non_index": {0, 1}, "oltp_insert": {0, 1}, "oltp_delete": {0, 1},
		} {
			w.Options = tables(server, "test", test)
			sum, _, own := drive(t, w)
			total := sum.Totals()
			if total.Operations != own.Transactions || total.Operations == 0 || total.ErrorCount() != own.Ignored || total.Service.Count() != total.Operations {
				t.Errorf("%s: %d transactions with %d errors, and sysbench reports %d with %d", test, total.Operations, total.ErrorCount(), own.Transactions, own.Ignored)
			}
			// A transaction that met an error began again. A query that changes no row counts as another.
			writes := own.Written
			if each[0] == 0 && test != "oltp_write_only" {
				writes += own.Other
			}
			tries := own.Transactions + own.Ignored
			if own.Read < each[0]*own.Transactions || own.Read > each[0]*tries || test != "oltp_write_only" && test != "oltp_read_write" && writes != each[1]*own.Transactions {
				t.Errorf("%s: %+v", test, own)
			}
		}
		w.Options = tables(server, "test", "oltp_read_only", "skip_trx", "on", "range_selects", "off", "point_selects", "3", "prepared", "off")
		if _, said, own := drive(t, w); own.Read != 3*own.Transactions || own.Other != 0 || !strings.Contains(said, "--db-ps-mode=disable") {
			t.Errorf("three point selects outside of a transaction: %+v", own)
		}
	})
}

// A load without its tables, with others, or twice at once is refused.
func TestDatabaseRefusals(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		prepare := func(w load.Workload) error {
			in, err := sysbench.Generator{}.Prepare(t.Context(), w)
			if err == nil {
				_ = in.Close()
			}
			return err
		}
		w := prepared(t, tables(server))
		for want, more := range map[string][]string{"want 3 tables of 1000 rows, found 2 tables": {"tables", "3"}, "found 2 tables of 1000 rows": {"table_size", "2000"}} {
			other := w
			other.Options = tables(server, more...)
			if err := prepare(other); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want %q", more, err, want)
			}
		}
		first, err := sysbench.Generator{}.Prepare(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if err := prepare(w); err == nil || !strings.Contains(err.Error(), "another load") {
			t.Errorf("twice at once: %v", err)
		}
		_ = first.Close()
		empty := workload(t, tables(server))
		if err := os.WriteFile(empty.Devices[0].Path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := prepare(empty); err == nil || !strings.Contains(err.Error(), "no database") {
			t.Errorf("without a prefill: %v", err)
		}
	})
}

// A server that dies under a load is named as the cause.
func TestServerDies(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		w := prepared(t, tables(server))
		room := filepath.Join(filepath.Dir(w.Devices[0].Path), "sysbench-"+server+"-sdb")
		err := loadtest.Drive(t.Context(), sysbench.Generator{}, w, load.SinkFunc(func(iv interval.Interval) {
			if iv.Sequence == 1 {
				loadtest.KillUsers(t, filepath.Join(room, "sdb", "data"))
			}
		}))
		if err == nil || !strings.Contains(err.Error(), "ended: ") {
			t.Errorf("%v", err)
		}
	})
}

// An endpoint is reached with the user's settings, and its password is in no output.
func TestDatabaseEndpoint(t *testing.T) {
	needSysbench(t)
	testreq.Program(t, "psql")
	own := prepared(t, tables("postgresql"))
	dir := filepath.Dir(own.Devices[0].Path)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	held, err := sysbench.Generator{}.Prepare(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	t.Setenv("BRAGG_ENDPOINT_LAB_DB", "host="+dir+"/sysbench-postgresql-sdb/sdb/run user=bragg dbname=bragg password=s3cret")
	w := load.Workload{Name: "remote", Group: "g", VM: "g-0001", Instance: 1, Generator: sysbench.Name, Options: tables("postgresql", "endpoint", "lab-db"), Runtime: time.Second}
	fill := w
	fill.Prefill = true
	_, filled, _ := drive(t, fill)
	sum, said, _ := drive(t, w)
	if sum.Totals().Operations == 0 || strings.Contains(filled+said, "s3cret") || strings.Contains(filled+said, dir) {
		t.Errorf("%d operations; outputs:\n%s%s", sum.Totals().Operations, filled, said)
	}
	checkRemoval(t, fill)
}

// checkRemoval removes what a prefill made, after which its load is refused and nothing is left to remove.
func checkRemoval(t *testing.T, fill load.Workload) {
	t.Helper()
	fill.Remove = true
	drive(t, fill)
	drive(t, fill)
	fill.Prefill, fill.Remove = false, false
	if _, err := (sysbench.Generator{}).Prepare(t.Context(), fill); err == nil || !strings.Contains(err.Error(), "found none") {
		t.Errorf("after the removal: %v", err)
	}
}

// MariaDB's endpoint asks for a password, which is in no output, no list of arguments and no file.
func TestMariaDBEndpoint(t *testing.T) {
	needSysbench(t)
	testreq.Program(t, "mariadb")
	own := prepared(t, tables("mariadb"))
	dir := filepath.Dir(own.Devices[0].Path)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	held, err := sysbench.Generator{}.Prepare(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	const password = "s3cret#'x\\y"
	socket := filepath.Join(dir, "sysbench-mariadb-sdb", "sdb", "run", "socket")
	statement := "CREATE USER app@localhost IDENTIFIED BY 's3cret#\\'x\\\\y'; GRANT ALL ON bragg.* TO app@localhost"
	if out, err := exec.Command("mariadb", "--no-defaults", "--socket="+socket, "--user=root", "--execute="+statement).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w := load.Workload{Name: "remote", Group: "g", VM: "g-0001", Instance: 1, Generator: sysbench.Name, Options: tables("mariadb", "endpoint", "lab-db"), Runtime: time.Second}
	w.Prefill = true
	t.Setenv("BRAGG_ENDPOINT_LAB_DB", "host="+socket+" user=app dbname=bragg password=wrong")
	if _, err := (sysbench.Generator{}).Prepare(t.Context(), w); err == nil || !strings.Contains(all(err), "Access denied") || strings.Contains(all(err), "wrong") {
		t.Errorf("with a wrong password: %v", err)
	}
	t.Setenv("BRAGG_ENDPOINT_LAB_DB", "host="+socket+" user=app dbname=bragg password="+password)
	_, filled, _ := drive(t, w)
	w.Prefill = false
	seen := make(chan string, 1)
	time.AfterFunc(500*time.Millisecond, func() {
		lists, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		found := ""
		for _, list := range lists {
			if text, err := os.ReadFile(list); err == nil && strings.Contains(string(text), "sysbench") && strings.Contains(string(text), "--config-file") {
				found += string(text)
			}
		}
		seen <- found
	})
	sum, said, _ := drive(t, w)
	arguments := <-seen
	if sum.Totals().Operations == 0 || strings.Contains(filled+said, "s3cret") || strings.Contains(filled+said, dir) {
		t.Errorf("%d operations; outputs:\n%s%s", sum.Totals().Operations, filled, said)
	}
	if arguments == "" || strings.Contains(arguments, "s3cret") || strings.Contains(arguments, dir) {
		t.Errorf("arguments of sysbench: %q", arguments)
	}
	if out, err := exec.Command("grep", "-rlaF", "s3cret", filepath.Join(dir, "sysbench-mariadb-lab-db")).Output(); len(out) > 0 {
		t.Errorf("the password is in files: %s, %v", out, err)
	}
	w.Prefill = true
	checkRemoval(t, w)
}

// A load that is stopped while transactions run has all of them.
func TestStopDatabase(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		w := prepared(t, tables(server))
		ctx, cancel := context.WithCancel(t.Context())
		var log loadtest.Log
		err := loadtest.Drive(ctx, sysbench.Generator{}, w, load.SinkFunc(func(iv interval.Interval) {
			log.Interval(iv)
			if iv.Sequence == 1 {
				cancel()
			}
		}))
		sum := loadtest.Add(log.Intervals())
		if total := sum.Totals(); err != nil || total.Operations == 0 || total.Service != nil {
			t.Errorf("%v, %+v", err, total)
		}
	})
}

// TestDatabaseDiesWithUs kills a process that runs a server and sysbench, or fills one, as power off does with an agent, and starts again.
func TestDatabaseDiesWithUs(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		for _, prefill := range []string{"", "1"} {
			w := prepared(t, tables(server))
			room := filepath.Join(filepath.Dir(w.Devices[0].Path), "sysbench-"+server+"-sdb")
			variables := []string{helperDisk + "=" + w.Devices[0].Path, helperServer + "=" + server, helperPrefill + "=" + prefill}
			loadtest.Orphans(t, variables, 3, func() {
				if len(loadtest.Users(t, room)) < 2 {
					t.Errorf("processes %v use %s, want the server and sysbench", loadtest.Users(t, room), room)
				}
			}, func() []string {
				var left []string
				for _, pid := range loadtest.Users(t, room) {
					left = append(left, strconv.Itoa(pid))
				}
				return left
			})
			if prefill == "" { // the server recovers
				w.Runtime = time.Second
				if err := loadtest.Drive(t.Context(), sysbench.Generator{}, w, &loadtest.Log{}); err != nil {
					t.Errorf("start again: %v", err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(room, "sdb", "run", "*")); prefill == "" && len(left) > 0 && !strings.HasPrefix(filepath.Base(left[0]), ".s.") {
				t.Errorf("files are left: %v", left)
			}
		}
	})
}

func TestBadDatabaseOptions(t *testing.T) {
	for want, more := range map[string][]string{
		`server: "oracle" is not`:         {"server", "oracle"},
		"tables":                          {"tables", "0"},
		"data and table_size exclude":     {"data", "1GiB"},
		`no option "tablesize" (did`:      {"tablesize", "3"},
		`no option "point_select"`:        {"point_select", "3"},
		"rate":                            {"rate", "-5"},
		`"zipfian" is not one of special`: {"rand_type", "zipfian"},
		`"maybe" is not one of on, off`:   {"prepared", "maybe"},
		"an endpoint has its own disks":   {"endpoint", "rds", "disk", "/dev/sdb"},
	} {
		if _, err := (sysbench.Generator{}).Plan(workload(t, tables("postgresql", more...))); err == nil || !strings.Contains(all(err), want) {
			t.Errorf("%v: %v, want %q", more, err, want)
		}
	}
	for want, more := range map[string][]string{
		`no option "wal_disk"`:   {"wal_disk", "/dev/sdb"},
		"is not a size":          {"innodb_buffer_pool_size", "1000000"},
		"has no binary log":      {"sync_binlog", "1"},
		`has /dev/sdb`:           {"redo_disk", "/dev/sdz"},
		`innodb_buffer_pool_siz`: {"innodb_buffer_pool_siz", "1GiB"},
	} {
		if _, err := (sysbench.Generator{}).Plan(workload(t, tables("mariadb", more...))); err == nil || !strings.Contains(all(err), want) {
			t.Errorf("%v: %v, want %q", more, err, want)
		}
	}
	missing := tables("postgresql")
	delete(missing, "table_size")
	if _, err := (sysbench.Generator{}).Plan(workload(t, missing)); err == nil || !strings.Contains(all(err), "size of the data is missing") {
		t.Errorf("without a size: %v", err)
	}
}

// Data that fits into the buffer pool is noted.
func TestDataInBufferPool(t *testing.T) {
	for size, want := range map[string]bool{"1GiB": true, "64MiB": false} {
		w := workload(t, tables("mariadb", "table_size", "300000", "innodb_buffer_pool_size", size))
		w.Devices[0].SizeBytes = 8 << 30
		p, err := sysbench.Generator{}.Plan(w)
		if got := strings.Contains(strings.Join(p.Notes, "\n"), "fits into the buffer pool"); err != nil || got != want {
			t.Errorf("%s: %q, %v", size, p.Notes, err)
		}
	}
}

// A size means as many rows as fit into it.
func TestRowsOfSize(t *testing.T) {
	options := tables("postgresql", "data", "512MiB", "test", "oltp_point_select", "rate", "50", "shared_buffers", "64MB")
	delete(options, "table_size")
	w := workload(t, options)
	w.Devices[0].SizeBytes = 8 << 30
	w.Runtime = time.Minute
	p, err := sysbench.Generator{}.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(p.Program.Commands, "\n") + strings.Join(p.Program.Data, "\n")
	rows := (512<<20 - 8<<20) / 255 / 2
	for _, want := range []string{fmt.Sprintf("--table-size=%d ", rows), "--rate=50", "-c shared_buffers=64MB", "--pgsql-host=/dev/sdb/run", "/dev/sdb: WAL"} {
		if !strings.Contains(text, want) {
			t.Errorf("plan lacks %q:\n%s", want, text)
		}
	}
	if j := p.Jobs[0]; j.RateIOPS != 50 || j.Writes || !j.Reads || p.Engine.Loop != interval.LoopOpen || len(p.Engine.Gauges) != 12 {
		t.Errorf("%+v, %+v", j, p.Engine)
	}
	w.Scale.Factor = 0.01
	if p, err = (sysbench.Generator{}).Plan(w); err != nil || p.ScaledFrom == 0 || !strings.Contains(p.Program.Data[0], fmt.Sprintf("of %d rows", (rows+50)/100)) {
		t.Errorf("a rehearsal: %v, %+v", err, p.Program.Data)
	}
}
