package hammerdb_test

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load/hammerdb"
)

// Scripts and argument lists have neither addresses nor names nor passwords; the environment has them.
func TestSecretsAreInTheEnvironment(t *testing.T) {
	secrets := []string{"db.example", "54321", "verify-full", "shop", "seller", "pa55word", "root-of-all", "adm1nword", "maintenance"}
	a := hammerdb.Access{Host: secrets[0], Port: secrets[1], SSLMode: secrets[2], Database: secrets[3], User: secrets[4], Password: secrets[5],
		Admin: secrets[6], AdminPassword: secrets[7], AdminDatabase: secrets[8]}
	test := hammerdb.Test{Warehouses: 7, Builders: 3, Users: 5, RampupMinutes: 2, Minutes: 9}
	environment := strings.Join(a.Environment(), "\n")
	for _, action := range []hammerdb.Action{hammerdb.Build, hammerdb.Check, hammerdb.Run, hammerdb.Delete} {
		script := test.Script(action)
		command := hammerdb.Command("/opt/hammerdb", "script.tcl", "/tmp/private", &a)
		for _, s := range secrets {
			if strings.Contains(script, s) || strings.Contains(command.String(), s) || !strings.Contains(environment, "="+s) {
				t.Errorf("%s: %q is in the script or the command, or not in the environment:\n%s\n%s", action, s, script, command)
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
	test := hammerdb.Test{Warehouses: 7, Builders: 3, Users: 5, RampupMinutes: 2, Minutes: 9}
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
