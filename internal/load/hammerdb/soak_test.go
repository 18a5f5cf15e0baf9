package hammerdb_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/hammerdb"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/postgres"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/testreq"
)

const secret = "s3cretPassw0rd"

// bench is an installation of HammerDB with a PostgreSQL of its own.
type bench struct {
	t      *testing.T
	home   string
	server *postgres.Server
	test   hammerdb.Test
	access hammerdb.Access
	calls  int
	spoken string // output of all calls
}

// TestHammerDB builds a warehouse, checks it, runs a timed test and deletes it, and holds the result against the database's own counters.
// HAMMERDB_HOME is an installation of HammerDB, as its README says.
func TestHammerDB(t *testing.T) {
	home := testreq.Soak(t, "HAMMERDB_HOME", "needs an installation of HammerDB")
	b := newBench(t, home)
	if o := b.call(hammerdb.Check); o.Err() == nil {
		t.Errorf("a schema that was not built passes: %+v", o)
	}
	if o := b.call(hammerdb.Build); o.Err() != nil {
		t.Fatal(o.Err())
	}
	if o := b.call(hammerdb.Build); o.Err() == nil {
		t.Errorf("a second build on a database with tables passes: %+v", o)
	}
	if o := b.call(hammerdb.Check); o.Err() != nil {
		t.Error(o.Err())
	}
	before := b.orders()
	o := b.call(hammerdb.Run)
	if o.Err() != nil || o.Result == nil {
		t.Fatalf("%+v, %v", o, o.Err())
	}
	b.compare(o.Result, b.orders()-before)
	if o := b.call(hammerdb.Delete); o.Err() != nil {
		t.Error(o.Err())
	}
	if text, err := b.server.Query(t.Context(), "SELECT count(*) FROM district"); err == nil {
		t.Errorf("after the schema was deleted it has %s districts", text)
	}
	if strings.Contains(b.spoken, secret) {
		t.Error("a password is in HammerDB's output")
	}
}

// TestGenerator runs the contract suite with the real program, and one whole minute of it.
func TestGenerator(t *testing.T) {
	home := testreq.Soak(t, "HAMMERDB_HOME", "needs an installation of HammerDB")
	for _, server := range soakServers() {
		t.Run(server, func(t *testing.T) { testGenerator(t, prefilled(t, home, server)) })
	}
}

// soakServers are those of HAMMERDB_SERVERS, or all: a HammerDB on a distribution's Tcl has no library for mariadb.
func soakServers() []string {
	return strings.Fields(cmp.Or(os.Getenv("HAMMERDB_SERVERS"), "postgresql mariadb mysql"))
}

func testGenerator(t *testing.T, w load.Workload) {
	loadtest.RunAny(t, subject(w))
	checkOrphans(t, w)
	w.Runtime = time.Minute
	in, err := hammerdb.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	if err := in.Run(t.Context(), &log); err != nil {
		t.Error(err)
	}
	text := in.(load.Teller).Outputs()[0].Text
	t.Log(text)
	m := regexp.MustCompile(`result: (\d+) NOPM and \d+ TPM, as HammerDB counts; (\d+) new orders`).FindStringSubmatch(text)
	calls := regexp.MustCompile(`user 2 NEWORD: (\d+) calls`).FindStringSubmatch(text)
	if m == nil || calls == nil {
		t.Fatalf("result %q, calls %q", m, calls)
	}
	made, _ := strconv.Atoi(calls[1])
	counted, _ := strconv.Atoi(m[2])
	// One new order in a hundred is rolled back by the rules of TPC-C, which on MySQL takes its number back.
	if rolled := float64(made-counted) / float64(made); rolled < 0 || rolled > 0.02 || w.Options["server"] == "postgresql" && made != counted {
		t.Errorf("%d new orders called, %d counted", made, counted)
	}
	p, err := hammerdb.Generator{}.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	checkShare(t, p, log.Intervals(), 0.40, 0.47)
	var most, sum uint64
	for _, iv := range log.Intervals() {
		sum += iv.Directions[0].Operations
		most = max(most, iv.Directions[0].Operations)
	}
	t.Logf("%d new orders in %d intervals, at most %d in one", sum, len(log.Intervals()), most)
	if fmt.Sprint(sum) != m[2] {
		t.Errorf("intervals have %d new orders, want %s", sum, m[2])
	}
}

// TestSoakQueries builds and runs TPROC-H with the real program: two users, each one set of queries.
func TestSoakQueries(t *testing.T) {
	home := testreq.Soak(t, "HAMMERDB_HOME", "needs an installation of HammerDB")
	for _, server := range soakServers() {
		t.Run(server, func(t *testing.T) {
			options := queryOptions(server, map[string]string{"users": "2"})
			if server == "postgresql" {
				options["shared_buffers"] = "512MiB"
			} else {
				options["innodb_buffer_pool_size"] = "3GiB" // with less, one query takes minutes
			}
			soakQueries(t, prefilledBy(t, home, server, options))
		})
	}
}

func soakQueries(t *testing.T, w load.Workload) {
	in, err := hammerdb.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	began := time.Now()
	err = in.Run(t.Context(), &log)
	took := time.Since(began)
	outputs := in.(load.Teller).Outputs()
	keep(t, w.Options["server"]+"-queries", outputs)
	t.Logf("%.5000s", outputs[0].Text)
	if err != nil {
		t.Fatal(err)
	}
	// The two users wait for each other's queries in nothing but the database: each has its whole set within the load.
	d := loadtest.Add(log.Intervals()).Directions[0]
	seconds := d.Service.Sum() / 1e9
	t.Logf("%d queries of %.3f s in %v", d.Operations, seconds, took)
	if d.Operations != 44 || seconds > 2*took.Seconds() {
		t.Errorf("%d queries of %.3f s in a load of %v, want 44", d.Operations, seconds, took)
	}
}

// keep writes what programs printed for the corpus of the parsers.
func keep(t *testing.T, name string, outputs []load.Output) {
	folder := os.Getenv("BRAGG_KEEP_HAMMERDB")
	if folder == "" {
		return
	}
	for i, o := range outputs {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d.txt", name, i)), []byte(o.Text), 0o600); err != nil {
			t.Error(err)
		}
	}
}

func newBench(t *testing.T, home string) *bench {
	dir, err := os.MkdirTemp("/var/tmp", "bragg-test-") // which PostgreSQL's user may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(dir, "sdb")
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := load.Workload{Name: "w", Group: "g", VM: "g-0001", Instance: 1, Devices: []load.Device{{Name: "/dev/sdb", Path: disk, SizeBytes: 8 << 30}}}
	c := postgres.ReadConfig(&load.Options{}, &w, nil)
	s, err := c.Open(t.Context(), &w, postgres.Use{Name: "hammerdb", Said: program.NewTranscript(load.OutputBytesMax)})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%.20000s", s.Outputs("commands.txt"))
		}
		_ = s.Close()
	})
	if err == nil {
		err = s.Create(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, home: home, server: s, test: hammerdb.Test{Dialect: hammerdb.PostgreSQL, Warehouses: 1, Builders: 1, Users: 1, Minutes: 1, Procedures: true},
		access: hammerdb.Access{Host: s.Socket(), Port: "5432", SSLMode: "disable", Database: postgres.Role, User: postgres.Role, Password: secret,
			Admin: "postgres", AdminPassword: secret, AdminDatabase: "postgres"}}
}

// call runs hammerdbcli in a temporary folder of its own.
func (b *bench) call(action hammerdb.Action) hammerdb.Output {
	b.t.Helper()
	b.calls++
	folder := "sdb/hammerdb-" + strconv.Itoa(b.calls)
	if err := b.server.Room.Make(folder); err != nil {
		b.t.Fatal(err)
	}
	if err := b.server.Room.WriteFile(folder+"/script.tcl", b.test.Script(action)); err != nil {
		b.t.Fatal(err)
	}
	at := b.server.Room.Path(folder)
	command := b.server.Room.Confine(hammerdb.Command(b.home, at+"/script.tcl", at, hammerdb.PostgreSQL, &b.access))
	command.Account = nil                        // as in the generator, for SQLite
	command.Stdin = strings.NewReader("start\n") // for the users of a run
	text, err := command.Run(b.t.Context())
	b.spoken += text
	b.t.Logf("%s: %v\n%s", action, err, strings.ReplaceAll(text, "\r", ""))
	if err != nil {
		b.t.Fatalf("%s: %v", action, err) // it exits with 0 even after failures
	}
	if kept := os.Getenv("BRAGG_KEEP_HAMMERDB"); kept != "" {
		_ = os.WriteFile(filepath.Join(kept, fmt.Sprintf("%d-%s.txt", b.calls, action)), []byte(text), 0o600)
	}
	o, err := hammerdb.ParseOutput(text)
	if err != nil {
		b.t.Fatal(err)
	}
	return o
}

// orders is how many orders the database has counted.
func (b *bench) orders() uint64 {
	b.t.Helper()
	text, err := b.server.Query(b.t.Context(), "SELECT sum(d_next_o_id - 1) FROM district")
	n, numberErr := strconv.ParseUint(text, 10, 63)
	if err != nil || numberErr != nil {
		b.t.Fatalf("%q: %v, %v", text, err, numberErr)
	}
	return n
}

// compare holds the result and the profile against the orders that the database counted: all users' calls, also those after the minute of
// the result.
func (b *bench) compare(r *hammerdb.Result, orders uint64) {
	b.t.Helper()
	text, err := os.ReadFile(b.server.Room.Path("sdb", "hammerdb-"+strconv.Itoa(b.calls), hammerdb.ProfileFile))
	if err != nil {
		b.t.Fatal(err)
	}
	users, err := hammerdb.ParseProfile(string(text))
	if err != nil {
		b.t.Fatal(err)
	}
	var calls uint64
	for _, u := range users {
		for _, p := range u.Procedures {
			if p.Name == "NEWORD" {
				calls += p.Calls
			}
		}
	}
	b.t.Logf("%d NOPM, %d TPM, share %.3f; the database counted %d orders, users made %d", r.NOPM, r.TPM, r.NewOrderShare(), orders, calls)
	if r.NOPM == 0 || r.NOPM > orders || orders != calls {
		b.t.Errorf("%d NOPM in a minute, %d orders in the database, %d calls of its users", r.NOPM, orders, calls)
	}
	if s := r.NewOrderShare(); s < 0.40 || s > 0.47 {
		b.t.Errorf("%.3f new orders per transaction", s)
	}
}
