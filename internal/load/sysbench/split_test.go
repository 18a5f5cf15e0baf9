package sysbench_test

import (
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/sysbench"
)

// asks runs a statement on a server over the network.
func asks(t *testing.T, server string, port int, user, password, statement string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "mariadb", "--no-defaults", "--batch", "--skip-column-names", "--host=127.0.0.1",
		fmt.Sprintf("--port=%d", port), "--user="+user, "--database=bragg", "--execute="+statement)
	c.Env = []string{"PATH=/usr/bin:/bin", "MYSQL_PWD=" + password}
	if server == "postgresql" {
		c = exec.CommandContext(t.Context(), "psql", "--no-psqlrc", "--no-password", "--tuples-only", "--no-align", "--command="+statement)
		c.Env = []string{"PATH=/usr/bin:/bin", "PGHOST=127.0.0.1", fmt.Sprintf("PGPORT=%d", port), "PGUSER=" + user, "PGDATABASE=bragg", "PGPASSWORD=" + password}
	}
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// TestSplit: clients on two VMs share a server on a third. Its tables have a row for each insert that they recorded, one of them asks it
// for its counters, and the secret of the load is needed to connect.
func TestSplit(t *testing.T) {
	eachServerAlone(t, func(t *testing.T, server string) {
		options := tables(server, "test", "oltp_insert")
		s := loadtest.Serve(t, sysbench.Generator{}, prepared(t, options), 2)
		for name, c := range map[string]struct{ user, password string }{
			"no password": {"bragg", ""}, "wrong password": {"bragg", "x" + loadtest.Password}, "nameless": {"%", ""},
			"root": {"root", ""}, "root with the secret": {"root", loadtest.Password}, "administrator": {"postgres", loadtest.Password}, "account": {"mysql", ""},
		} {
			if out, err := asks(t, server, s.Port, c.user, c.password, "SELECT 1"); err == nil {
				t.Errorf("%s: %s", name, out)
			}
		}
		var work sync.WaitGroup
		logs := make([]loadtest.Log, len(s.Clients))
		engines := make([]string, len(s.Clients))
		for i, w := range s.Clients {
			w.Runtime = 2 * time.Second
			work.Go(func() {
				in, err := sysbench.Generator{}.Prepare(t.Context(), w)
				if err != nil {
					t.Error(err)
					return
				}
				engines[i] = strings.Join(in.(load.Describer).Engine().Backends, ", ")
				if err := in.Run(t.Context(), &logs[i]); err != nil {
					t.Error(err)
				}
				for _, o := range in.(load.Teller).Outputs() {
					if strings.Contains(o.Text, loadtest.Password) {
						t.Errorf("%s has the password", o.Name)
					}
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
			if known := asksServer(logs[i].Intervals()); known != (i == 0) {
				t.Errorf("clients-%d has counters of the server: %v", i, known)
			}
			if !strings.Contains(engines[i], map[string]string{"postgresql": "PostgreSQL ", "mariadb": "MariaDB "}[server]) {
				t.Errorf("clients-%d has the backends %q", i, engines[i])
			}
		}
		rows, err := asks(t, server, s.Port, "bragg", loadtest.Password, "SELECT (SELECT count(*) FROM sbtest1) + (SELECT count(*) FROM sbtest2)")
		if want := fmt.Sprint(done + 2000); err != nil || rows != want {
			t.Errorf("%s rows after %d inserts, want %s: %v", rows, done, want, err)
		}
		_ = s.Server.Close()
		if out, err := asks(t, server, s.Port, "bragg", loadtest.Password, "SELECT 1"); err == nil {
			t.Errorf("the server still answers: %s", out)
		}
		if _, err := (sysbench.Generator{}).Prepare(t.Context(), s.Clients[0]); err == nil || !strings.Contains(err.Error(), `reach the server on vm "db-0001"`) {
			t.Errorf("a server that cannot be reached: %v", err)
		}
	})
}

// serverGauge is the number of the first gauge of the server: sysbench has six before it.
const serverGauge = 6

// asksServer reports whether intervals have what a server says of itself.
func asksServer(list []interval.Interval) bool {
	return slices.ContainsFunc(list, func(iv interval.Interval) bool {
		return len(iv.Gauges) > serverGauge && !math.IsNaN(iv.Gauges[serverGauge])
	})
}

// Only tests of databases have servers.
func TestNoServer(t *testing.T) {
	w := workload(t, map[string]string{"test": "cpu"})
	w.Remote.Peers = []load.Peer{{VM: "db-0001"}}
	if _, err := (sysbench.Generator{}).Plan(w); err == nil || !strings.Contains(err.Error(), "the test cpu has no server") {
		t.Errorf("cpu with a server group: %v", err)
	}
}
