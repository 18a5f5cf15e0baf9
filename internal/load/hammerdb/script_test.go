package hammerdb_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load/hammerdb"
)

// Scripts and argument lists have neither addresses nor names nor passwords; the environment has them.
func TestSecretsAreInTheEnvironment(t *testing.T) {
	for _, d := range []*hammerdb.Dialect{hammerdb.PostgreSQL, hammerdb.MySQL, hammerdb.MariaDB} {
		testSecrets(t, d)
	}
}

func testSecrets(t *testing.T, d *hammerdb.Dialect) {
	t.Helper()
	secrets := []string{"db.example", "54321", "shop", "seller", "pa55word", "verify-full", "root-of-all", "adm1nword", "maintenance"}
	a := hammerdb.Access{Host: secrets[0], Port: secrets[1], Database: secrets[2], User: secrets[3], Password: secrets[4], SSLMode: secrets[5],
		Admin: secrets[6], AdminPassword: secrets[7], AdminDatabase: secrets[8]}
	if d != hammerdb.PostgreSQL {
		secrets = secrets[:5]
	}
	test := hammerdb.Test{Dialect: d, Warehouses: 7, Builders: 3, Users: 5, RampupMinutes: 2, Minutes: 9}
	environment := strings.Join(d.Environment(&a), "\n")
	for _, action := range []hammerdb.Action{hammerdb.Build, hammerdb.Check, hammerdb.Run, hammerdb.Delete} {
		script := test.Script(action)
		command := hammerdb.Command("/opt/hammerdb", "script.tcl", "/tmp/private", d, &a)
		for _, s := range secrets {
			if strings.Contains(script, s) || strings.Contains(command.String(), s) || !strings.Contains(environment, "="+s) {
				t.Errorf("%s, %s: %q is in the script or the command, or not in the environment:\n%s\n%s", d.Name, action, s, script, command)
			}
		}
		for variable := range strings.SplitSeq(environment, "\n") {
			if name, _, _ := strings.Cut(variable, "="); !strings.Contains(script, "$::env("+name+")") {
				t.Errorf("%s: the script does not read %s", action, name)
			}
		}
	}
}

func TestScripts(t *testing.T) {
	test := hammerdb.Test{Dialect: hammerdb.PostgreSQL, Warehouses: 7, Builders: 3, Users: 5, RampupMinutes: 2, Minutes: 9}
	for action, want := range map[hammerdb.Action][]string{
		hammerdb.Build:  {"diset tpcc pg_count_ware 7", "diset tpcc pg_num_vu 3", "buildschema"},
		hammerdb.Check:  {"checkschema"},
		hammerdb.Run:    {"diset tpcc pg_rampup 2", "diset tpcc pg_duration 9", "diset tpcc pg_timeprofile true", "vuset vu 5", "vurun"},
		hammerdb.Delete: {"deleteschema"},
	} {
		lines := strings.Split(strings.TrimSpace(test.Script(action)), "\n")
		for _, w := range want {
			found := 0
			for _, l := range lines {
				if l == w {
					found++
				}
			}
			if found != 1 {
				t.Errorf("%s: %q is there %d times:\n%s", action, w, found, strings.Join(lines, "\n"))
			}
		}
		if last := lines[len(lines)-1]; last != "vudestroy" {
			t.Errorf("%s ends with %q", action, last)
		}
	}
}

func TestDialects(t *testing.T) {
	for d, want := range map[*hammerdb.Dialect][]string{
		hammerdb.MySQL: {"dbset db mysql", "dict set ::configmysql connection mysql_socket $::env(BRAGG_HAMMERDB_SOCKET)", "diset tpcc mysql_count_ware 7",
			"diset tpcc mysql_rampup 2", "diset tpcc mysql_timeprofile true"},
		hammerdb.MariaDB: {"dbset db maria", "dict set ::configmariadb tpcc maria_pass $::env(BRAGG_HAMMERDB_PASSWORD)", "diset tpcc maria_num_vu 3", "diset tpcc maria_duration 9"},
	} {
		test := hammerdb.Test{Dialect: d, Warehouses: 7, Builders: 3, Users: 5, RampupMinutes: 2, Minutes: 9}
		script := "\n" + test.Script(hammerdb.Run)
		for _, w := range want {
			if strings.Count(script, "\n"+w+"\n") != 1 {
				t.Errorf("%s: %q is not there once:%s", d.Name, w, script)
			}
		}
		if strings.Contains(script, "storedprocs") || strings.Contains(script, "pg_") {
			t.Errorf("%s: the script has settings of PostgreSQL:%s", d.Name, script)
		}
	}
	// A socket takes the place of host and port, and the other way around.
	for host, want := range map[string]string{"/run/db/socket": "HOST=localhost SOCKET=/run/db/socket", "db.example": "HOST=db.example SOCKET=null"} {
		environment := hammerdb.MySQL.Environment(&hammerdb.Access{Host: host})
		for word := range strings.FieldsSeq(want) {
			if !slices.Contains(environment, "BRAGG_HAMMERDB_"+word) {
				t.Errorf("%s: %q is not in %q", host, word, environment)
			}
		}
	}
}
