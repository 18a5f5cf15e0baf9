package hammerdb_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/hammerdb"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

// outside returns a load on an endpoint that only the played HammerDB reaches.
func outside(t *testing.T, server string) load.Workload {
	t.Helper()
	t.Setenv(hammerdb.HomeVariable, played(t))
	t.Chdir(t.TempDir())
	t.Setenv("BRAGG_ENDPOINT_LAB", "host=db.example user=sa password=s3cret-word dbname=bench")
	w := workload(t, map[string]string{"server": server, "endpoint": "lab", "keep_data": "true", "users": "2"})
	w.Devices = nil
	return w
}

// TestOutside: on SQL Server and Oracle a load has the transactions that HammerDB's counter states, and its result at the end. The output is a
// recorded one of MySQL under another name: no such server was there.
func TestOutside(t *testing.T) {
	for server, meaning := range map[string]interval.GaugeMeaning{"sqlserver": interval.GaugeNewOrderShare, "oracle": interval.GaugeNewOrderShareOracle} {
		t.Run(server, func(t *testing.T) {
			w := outside(t, server)
			fill := w
			fill.Prefill = true
			var log loadtest.Log
			if err := loadtest.Drive(t.Context(), hammerdb.Generator{}, fill, &log); err != nil {
				t.Fatal(err)
			}
			w.Runtime, w.IntervalLength = time.Minute, 200*time.Millisecond
			in, err := hammerdb.Generator{}.Prepare(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			engine := in.(load.Describer).Engine()
			log = loadtest.Log{}
			if err := in.Run(t.Context(), &log); err != nil {
				t.Fatal(err)
			}
			ivs := log.Intervals()
			loadtest.CheckOrder(t, w, ivs)
			sum := loadtest.Add(ivs)
			// 7 readings between 0.2 s each, of about 160,000 transactions per minute.
			if n := sum.Directions[0].Operations; n < 1000 || n > 20_000 || engine.Operations[0] != "transaction" {
				t.Errorf("%d of %v", n, engine.Operations)
			}
			last := ivs[len(ivs)-1].Gauges
			if len(last) != 3 || last[1] < 0.40 || last[1] > 0.47 || last[2] < 1000 || !(ivs[0].Gauges[1] != ivs[0].Gauges[1]) || math.IsNaN(last[0]) {
				t.Errorf("gauges at first %v, at last %v", ivs[0].Gauges, last)
			}
			if engine.GaugeMeant(meaning) != 1 || !slices.ContainsFunc(engine.Notes, func(n interval.EngineNote) bool { return n.Code == "not-tried" }) {
				t.Errorf("%+v", engine)
			}
			for _, o := range in.(load.Teller).Outputs() {
				if strings.Contains(o.Text, "s3cret") || strings.Contains(o.Text, "db.example") {
					t.Errorf("%s has settings of the endpoint:\n%s", o.Name, o.Text)
				}
			}
		})
	}
}

func TestOutsideScripts(t *testing.T) {
	a := hammerdb.Access{Host: "db.example", Port: "1999", Database: "bench", User: "u", Password: "p", Admin: "system", AdminPassword: "q"}
	for _, c := range []struct {
		dialect     *hammerdb.Dialect
		script      []string
		environment []string
	}{
		{hammerdb.SQLServer, []string{"dbset db mssqls", "dict set ::configmssqlserver connection mssqls_linux_server $::env(BRAGG_HAMMERDB_HOST)",
			"dict set ::configmssqlserver tpcc mssqls_dbase $::env(BRAGG_HAMMERDB_DATABASE)", "diset tpcc mssqls_count_ware 7", "diset tpcc mssqls_timeprofile true"},
			[]string{"BRAGG_HAMMERDB_HOST=db.example", "BRAGG_HAMMERDB_PORT=1999", "BRAGG_HAMMERDB_ENCRYPT=true", "BRAGG_HAMMERDB_TRUST=true", "BRAGG_HAMMERDB_BCP=false"}},
		{hammerdb.Oracle, []string{"dbset db ora", "dict set ::configoracle connection instance $::env(BRAGG_HAMMERDB_INSTANCE)", "dict set ::configoracle tpcc tpcc_user $::env(BRAGG_HAMMERDB_USER)",
			"diset tpcc count_ware 7", "diset tpcc ora_driver timed", "diset tpcc ora_timeprofile true", "diset tpcc rampup 1"},
			[]string{"BRAGG_HAMMERDB_INSTANCE=db.example:1999/bench", "BRAGG_HAMMERDB_ADMIN=system", "BRAGG_HAMMERDB_USER=u"}},
	} {
		test := hammerdb.Test{Dialect: c.dialect, Warehouses: 7, Builders: 1, Users: 5, RampupMinutes: 1, Minutes: 2}
		script := "\n" + test.Script(hammerdb.Run)
		for _, line := range c.script {
			if strings.Count(script, "\n"+line+"\n") != 1 {
				t.Errorf("%s: %q is not there once:%s", c.dialect.Name, line, script)
			}
		}
		for _, v := range c.environment {
			if !slices.Contains(c.dialect.Environment(&a), v) {
				t.Errorf("%s: %q is not in %q", c.dialect.Name, v, c.dialect.Environment(&a))
			}
		}
	}
}

func TestOutsideRefusals(t *testing.T) {
	for want, options := range map[string]map[string]string{
		"needs an endpoint":  {"server": "oracle"},
		"removes none":       {"server": "sqlserver", "endpoint": "lab"},
		"tproc-c only":       {"server": "sqlserver", "endpoint": "lab", "keep_data": "true", "test": "tproc-h", "scale_factor": "1"},
		`no option "shared_`: {"server": "oracle", "endpoint": "lab", "keep_data": "true", "shared_buffers": "1GB"},
	} {
		w := workload(t, options)
		if options["test"] != "" {
			delete(w.Options, "warehouses")
		}
		if _, err := (hammerdb.Generator{}).Plan(w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", options, err, want)
		}
	}
}

// Results as HammerDB's own documentation prints them.
func TestResultsOfOthers(t *testing.T) {
	for line, want := range map[string]hammerdb.Result{
		"Vuser 1:TEST RESULT : System achieved 26207 NOPM from 60951 SQL Server TPM": {NOPM: 26207, TPM: 60951, Database: "SQL Server"},
		"Vuser 1:TEST RESULT : System achieved 8043 NOPM from 16365 Oracle TPM":      {NOPM: 8043, TPM: 16365, Database: "Oracle"},
	} {
		if o, err := hammerdb.ParseOutput(line + "\n"); err != nil || o.Result == nil || *o.Result != want {
			t.Errorf("%q: %+v, %v", line, o.Result, err)
		}
	}
}
