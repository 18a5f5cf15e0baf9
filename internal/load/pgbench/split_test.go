package pgbench_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/pgbench"
)

// split is a load whose server is prepared.
type split struct{ loadtest.Split }

func serve(t *testing.T, options map[string]string, vms int) split {
	t.Helper()
	return split{loadtest.Serve(t, pgbench.Generator{}, prefilled(t, options), vms)}
}

const password = loadtest.Password

// asks runs a statement on the server over the network.
func (s split) asks(t *testing.T, user, password, statement string) (string, error) {
	t.Helper()
	psql := exec.CommandContext(t.Context(), "psql", "--no-psqlrc", "--no-password", "--tuples-only", "--no-align", "--command="+statement)
	psql.Env = []string{"PATH=/usr/bin:/bin", "PGHOST=127.0.0.1", fmt.Sprintf("PGPORT=%d", s.Port), "PGUSER=" + user, "PGDATABASE=" + user, "PGPASSWORD=" + password}
	out, err := psql.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// TestSplit: clients on two VMs share a server on a third. The database has a row for each transaction that they recorded, one of them
// asks it for its counters, and the secret of the load is needed to connect.
func TestSplit(t *testing.T) {
	needPostgreSQL(t)
	s := serve(t, map[string]string{"scale": "2", "clients": "3", "wal_disk": "/dev/sdc", "huge_pages": "off"}, 2)
	for name, c := range map[string]struct{ user, password, says string }{
		"no password":    {"bragg", "", "password"},
		"wrong password": {"bragg", "x" + password, "password authentication failed"},
		"administrator":  {"postgres", password, "no pg_hba.conf entry"},
	} {
		if out, err := s.asks(t, c.user, c.password, "SELECT 1"); err == nil || !strings.Contains(out, c.says) {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
	var work sync.WaitGroup
	logs := make([]loadtest.Log, len(s.Clients))
	for i, w := range s.Clients {
		w.Runtime = 1500 * time.Millisecond
		work.Go(func() {
			if err := loadtest.Drive(t.Context(), pgbench.Generator{}, w, &logs[i]); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	done := uint64(0)
	for i := range logs {
		sum := loadtest.Add(logs[i].Intervals())
		total := sum.Totals()
		if total.Operations == 0 {
			t.Errorf("clients-%d did nothing", i)
		}
		done += total.Operations
		known := false
		for _, iv := range logs[i].Intervals() {
			known = known || iv.Gauges[0] == iv.Gauges[0] && iv.Gauges[0] > 0 // not NaN
		}
		if known != (i == 0) {
			t.Errorf("clients-%d has counters of the server: %v", i, known)
		}
	}
	if rows, err := s.asks(t, "bragg", password, "SELECT count(*) FROM pgbench_history"); err != nil || rows != fmt.Sprint(done) {
		t.Errorf("%s rows of %d transactions, %v", rows, done, err)
	}
	_ = s.Server.Close()
	for _, o := range s.Server.(load.Teller).Outputs() {
		if strings.Contains(o.Text, password) {
			t.Errorf("%s has the password", o.Name)
		}
	}
	if out, err := s.asks(t, "bragg", password, "SELECT 1"); err == nil {
		t.Errorf("the server still answers: %s", out)
	}
}

// TestSplitServerLost: the load fails when its server is lost, the serving end says so too, and a load whose server cannot be reached names it.
func TestSplitServerLost(t *testing.T) {
	needPostgreSQL(t)
	s := serve(t, map[string]string{"scale": "1", "clients": "2", "threads": "1"}, 1)
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { served <- s.Server.Run(ctx, load.SinkFunc(func(interval.Interval) {})) }()
	in, err := pgbench.Generator{}.Prepare(t.Context(), s.Clients[0])
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{}, 1)
	go func() {
		<-started
		for _, pid := range parents(t, s.Port) {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	}()
	err = in.Run(t.Context(), load.SinkFunc(func(iv interval.Interval) {
		if iv.Directions[0].Operations > 0 {
			select {
			case started <- struct{}{}:
			default:
			}
		}
	}))
	if err == nil || !strings.Contains(err.Error(), "pgbench") {
		t.Errorf("the load without its server: %v", err)
	}
	if err := <-served; err == nil || !strings.Contains(err.Error(), "a server of PostgreSQL ended before its clients") {
		t.Errorf("the serving end: %v", err)
	}
	if _, err := (pgbench.Generator{}).Prepare(t.Context(), s.Clients[0]); err == nil || !strings.Contains(err.Error(), `reach the server on vm "db-0001"`) {
		t.Errorf("a server that cannot be reached: %v", err)
	}
}

// parents are the processes that listen on a port.
func parents(t *testing.T, port int) (list []int) {
	t.Helper()
	for _, pid := range users(t, "socket:") {
		var n int
		line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		if _, err := fmt.Sscan(pid, &n); err == nil && strings.Contains(string(line), fmt.Sprintf("port=%d", port)) {
			list = append(list, n)
		}
	}
	return list
}
