package hammerdb

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/load/program"
)

// Test is a TPROC-C test on PostgreSQL. The server, users and passwords are none of it: see Access.
type Test struct {
	Warehouses    int
	Builders      int // virtual users that build the schema
	Users         int // virtual users of a run
	RampupMinutes int // HammerDB has no shorter unit
	Minutes       int
	// Procedures makes transactions procedures instead of functions. HammerDB calls functions by a way of its own Tcl library, which
	// other ones, such as that of Debian, do not have: then every transaction fails.
	Procedures bool
	// AllWarehouses lets each user change its warehouse with each transaction; otherwise it stays with one.
	AllWarehouses bool
	// KeyAndThink lets users wait as people do, several seconds per transaction.
	KeyAndThink bool
}

// Action is what one call of hammerdbcli does.
type Action string

// All actions.
const (
	Build  Action = "build"
	Check  Action = "check"
	Run    Action = "run"
	Delete Action = "delete"
	// Probe loads the library of the database, and prints its version after probeMark, and how it calls functions.
	Probe Action = "probe"
)

const probeMark = "Pgtcl is version "

// readyLine is printed by a run before its users start. They start once a line comes from standard input.
const readyLine = "ready to start"

// marginSeconds is how long HammerDB may need for its results after the end of a test.
const marginSeconds = 60

// Access is how HammerDB reaches PostgreSQL. It goes into the environment, so that scripts and argument lists have no passwords and no
// addresses. HammerDB prints the address of a build in capital letters.
type Access struct {
	Host, Port           string // Host may be the folder of a socket
	SSLMode              string
	Database             string // of the schema; empty, or HammerDB makes it
	User, Password       string // of the schema; HammerDB makes the user or changes its password
	Admin, AdminPassword string // superuser
	AdminDatabase        string // that the superuser connects to first
}

// variables are the settings of HammerDB that Access has, with the variables that bring them.
func (a *Access) variables() []struct{ section, key, variable, value string } {
	return []struct{ section, key, variable, value string }{
		{"connection", "pg_host", "BRAGG_HAMMERDB_HOST", a.Host},
		{"connection", "pg_port", "BRAGG_HAMMERDB_PORT", a.Port},
		{"connection", "pg_sslmode", "BRAGG_HAMMERDB_SSLMODE", a.SSLMode},
		{"tpcc", "pg_dbase", "BRAGG_HAMMERDB_DATABASE", a.Database},
		{"tpcc", "pg_user", "BRAGG_HAMMERDB_USER", a.User},
		{"tpcc", "pg_pass", "BRAGG_HAMMERDB_PASSWORD", a.Password},
		{"tpcc", "pg_superuser", "BRAGG_HAMMERDB_ADMIN", a.Admin},
		{"tpcc", "pg_superuserpass", "BRAGG_HAMMERDB_ADMIN_PASSWORD", a.AdminPassword},
		{"tpcc", "pg_defaultdbase", "BRAGG_HAMMERDB_ADMIN_DATABASE", a.AdminDatabase},
	}
}

// Environment has the variables that scripts read.
func (a *Access) Environment() (env []string) {
	for _, v := range a.variables() {
		env = append(env, v.variable+"="+v.value)
	}
	return env
}

// Script is the Tcl script of an action. Settings of Access are put into HammerDB's dictionary itself, because its command diset prints
// values and keeps them in files.
func (t *Test) Script(action Action) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("fconfigure stdout -buffering line")
	if action == Probe {
		line("set library [package require Pgtcl]")
		line("catch {pg_exec_prepared} usage") // the message says how it is called
		line("puts \"%s$library: $usage\"", probeMark)
		return b.String()
	}
	line("dbset db pg")
	line("dbset bm TPC-C")
	for _, v := range (&Access{}).variables() {
		line("dict set ::configpostgresql %s %s $::env(%s)", v.section, v.key, v.variable)
	}
	line("diset tpcc pg_count_ware %d", t.Warehouses)
	line("diset tpcc pg_num_vu %d", t.Builders)
	line("diset tpcc pg_storedprocs %t", t.Procedures)
	switch action {
	case Build:
		line("buildschema")
	case Check:
		line("checkschema")
	case Delete:
		line("deleteschema")
	case Run:
		for _, s := range [][2]string{{"driver", "timed"}, {"rampup", strconv.Itoa(t.RampupMinutes)}, {"duration", strconv.Itoa(t.Minutes)}, {"timeprofile", "true"},
			{"allwarehouse", strconv.FormatBool(t.AllWarehouses)}, {"keyandthink", strconv.FormatBool(t.KeyAndThink)}} {
			line("diset tpcc pg_%s %s", s[0], s[1])
		}
		line("loadscript")
		line("vuset vu %d", t.Users)
		line("vucreate")
		line("dict set ::genericdict commandline keepalive_margin %d", marginSeconds)
		line("puts {%s}", readyLine)
		line("gets stdin")
		line("vurun")
	}
	line("vudestroy")
	return b.String()
}

// Command calls the hammerdbcli of an installation with a script. Its launcher finds its Tcl by its current folder. Temporary is a
// private folder, because HammerDB keeps settings, passwords among them, and results there, and reads those of earlier calls. Its user must be able
// to enter all folders above: SQLite resolves links such as those of program.Inherited.
func Command(home, script, temporary string, a *Access) program.Command {
	return program.Command{Path: filepath.Join(home, "hammerdbcli"), Args: []string{"tcl", "auto", script}, Dir: home,
		Env: append(a.Environment(), "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "TMP="+temporary)}
}

// ProfileFile is the name of the time profile in the temporary folder.
const ProfileFile = "hdbxtprofile.log"
