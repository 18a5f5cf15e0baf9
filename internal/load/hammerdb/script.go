package hammerdb

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/load/program"
)

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

// counterSeconds is the period of HammerDB's transaction counter.
const counterSeconds = 10

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

// script is the Tcl of one action of a test.
type script struct {
	strings.Builder
	dialect *Dialect
	bench   bench
	counts  bool // a run has HammerDB's transaction counter
}

// newScript begins a script. Settings of Access are put into HammerDB's dictionary itself, because its command diset prints values and keeps
// them in files.
func newScript(d *Dialect, b bench) *script {
	s := &script{dialect: d, bench: b}
	s.line("fconfigure stdout -buffering line")
	s.line("dbset db %s", d.Name)
	s.line("dbset bm %s", b.name)
	for _, v := range d.access(&Access{}) {
		section, key := d.place(b, v)
		s.line("dict set ::%s %s %s $::env(%s)", d.dictionary, section, key, variablePrefix+v.name)
	}
	return s
}

func (s *script) line(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// set changes a setting of the test.
func (s *script) set(name, value string) {
	s.line("diset %s %s %s", s.bench.section, s.dialect.key(name), value)
}

// end completes a script by its action. Users of a run start once a line comes from standard input.
func (s *script) end(action Action, users int) string {
	switch action {
	case Build:
		s.line("buildschema")
	case Check:
		s.line("checkschema")
	case Delete:
		s.line("deleteschema")
	case Run:
		s.line("loadscript")
		s.line("vuset vu %d", users)
		s.line("vucreate")
		s.line("dict set ::genericdict commandline keepalive_margin %d", marginSeconds)
		s.line("puts {%s}", readyLine)
		s.line("gets stdin")
		if s.counts {
			s.line("tcset refreshrate %d", counterSeconds)
			s.line("tcstart")
		}
		s.line("vurun")
		if s.counts {
			s.line("tcstop")
		}
	}
	s.line("vudestroy")
	return s.String()
}

// probeScript finds the versions.
func probeScript(d *Dialect) string { return "fconfigure stdout -buffering line\n" + d.probe() }

// Command calls the hammerdbcli of an installation with a script. Its launcher finds its Tcl by its current folder. Temporary is a
// private folder, because HammerDB keeps settings, passwords among them, and results there, and reads those of earlier calls. Its user must be able
// to enter all folders above: SQLite resolves links such as those of program.Inherited.
func Command(home, script, temporary string, d *Dialect, a *Access) program.Command {
	return program.Command{Path: filepath.Join(home, "hammerdbcli"), Args: []string{"tcl", "auto", script}, Dir: home,
		Env: append(d.Environment(a), "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "TMP="+temporary)}
}

// ProfileFile is the name of the time profile in the temporary folder.
const ProfileFile = "hdbxtprofile.log"
