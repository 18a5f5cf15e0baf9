package hammerdb

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/load/program"
)

// Test is a TPROC-C test. The server, users and passwords are none of it: see Access.
type Test struct {
	Dialect       *Dialect
	Warehouses    int
	Builders      int // virtual users that build the schema
	Users         int // virtual users of a run
	RampupMinutes int // HammerDB has no shorter unit
	Minutes       int
	// Procedures makes transactions of PostgreSQL procedures instead of functions. HammerDB calls functions by a way of its own Tcl library, which
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

// probeMark is behind the name of the library.
const probeMark = " is version "

// readyLine is printed by a run before its users start. They start once a line comes from standard input.
const readyLine = "ready to start"

// marginSeconds is how long HammerDB may need for its results after the end of a test.
const marginSeconds = 60

// Access is how HammerDB reaches a server. It goes into the environment, so that scripts and argument lists have no passwords and no
// addresses. HammerDB prints the address of a build in capital letters.
type Access struct {
	Host, Port           string // Host may be the folder of a socket, or on MySQL a socket
	SSLMode              string
	Database             string // of the schema; empty, or HammerDB makes it
	User, Password       string // of the schema; HammerDB makes the user or changes its password
	Admin, AdminPassword string // superuser of PostgreSQL
	AdminDatabase        string // that the superuser connects to first
}

// Script is the Tcl script of an action. Settings of Access are put into HammerDB's dictionary itself, because its command diset prints
// values and keeps them in files.
func (t *Test) Script(action Action) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("fconfigure stdout -buffering line")
	if action == Probe {
		return b.String() + t.Dialect.probe()
	}
	d := t.Dialect
	set := func(name, value string) { line("diset tpcc %s %s", d.key(name), value) }
	line("dbset db %s", d.Name)
	line("dbset bm TPC-C")
	for _, v := range d.access(&Access{}) {
		line("dict set ::%s %s %s $::env(%s)", d.dictionary, v.section, v.key, variablePrefix+v.name)
	}
	set("count_ware", strconv.Itoa(t.Warehouses))
	set("num_vu", strconv.Itoa(t.Builders))
	if d == PostgreSQL {
		set("storedprocs", strconv.FormatBool(t.Procedures))
	}
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
			set(s[0], s[1])
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
func Command(home, script, temporary string, d *Dialect, a *Access) program.Command {
	return program.Command{Path: filepath.Join(home, "hammerdbcli"), Args: []string{"tcl", "auto", script}, Dir: home,
		Env: append(d.Environment(a), "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "TMP="+temporary)}
}

// ProfileFile is the name of the time profile in the temporary folder.
const ProfileFile = "hdbxtprofile.log"
