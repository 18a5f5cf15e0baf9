package hammerdb

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// HomeVariable names the folder of the installation.
const HomeVariable = "BRAGG_HAMMERDB_HOME"

// homeFile has the folder on machines whose agents do not get variables.
const homeFile = "/etc/bragg/hammerdb"

// homePatterns are where HammerDB's own instructions unpack it.
var homePatterns = []string{"/opt/HammerDB-*", "/usr/local/HammerDB-*"}

// oldest is the first version that is supported. Tests run with it, with 5.0, and TPROC-C with 6.0.
const oldest = "4.12"

var need = load.Need{Program: "hammerdbcli", Oldest: oldest}

var installation = program.Installation{Name: "HammerDB", Program: "hammerdbcli", Variable: HomeVariable, File: homeFile, Usual: newest, UsualPlaces: homePatterns,
	Hint: "download HammerDB " + oldest + " or newer from its web site, unpack it on the VM, and set " + HomeVariable +
		" to its folder, or write that into " + homeFile + "; no distribution has a package of it"}

// newest returns the installation with the highest version where HammerDB's own instructions unpack it.
func newest() (home, from string) {
	for _, pattern := range homePatterns {
		found, _ := filepath.Glob(pattern)
		if slices.SortFunc(found, func(a, b string) int { return slices.Compare(versionNumbers(a), versionNumbers(b)) }); len(found) > 0 {
			home, from = found[len(found)-1], filepath.Dir(pattern)
		}
	}
	return home, from
}

var (
	versionPattern = regexp.MustCompile(`(?m)^\r?HammerDB CLI v(\d{1,4}(?:\.\d{1,4}){0,3})\r?$`)
	libraryPattern = regexp.MustCompile(`(?m)^\r?([\w:]{1,20})` + probeMark + `(\d{1,4}(?:\.\d{1,4}){0,3}): (.*)$`)
)

// versions are what a probe found.
type versions struct {
	hammerdb, library string
	// foreign: the Tcl library is not the one that HammerDB brings. That one takes the formats of a call before its parameters, and may be used
	// by several users at a time; that of Debian does neither.
	foreign bool
}

// readProbe reads what a probe printed.
func readProbe(home, text string, d *Dialect) (v versions, err error) {
	m := versionPattern.FindStringSubmatch(text)
	if m == nil {
		return v, installation.Missing("HammerDB in %s prints no version: %.400s", home, strings.TrimSpace(text))
	}
	v.hammerdb = m[1]
	if slices.Compare(versionNumbers(v.hammerdb), versionNumbers(oldest)) < 0 {
		return v, installation.Missing("HammerDB in %s is version %s, want %s or newer", home, v.hammerdb, oldest)
	}
	if m = libraryPattern.FindStringSubmatch(text); m == nil || m[1] != d.Library {
		more := ""
		if d == MariaDB {
			more = " (with server: mysql, HammerDB reaches a MariaDB by " + MySQL.Library + ")"
		}
		return v, installation.Missing("HammerDB in %s cannot load its library %s%s: %.400s", home, d.Library, more, strings.TrimSpace(text))
	}
	v.library, v.foreign = m[2], d == PostgreSQL && strings.Contains(m[3], foreignUsage)
	return v, nil
}

var numberPattern = regexp.MustCompile(`\d{1,9}`)

// versionNumbers are the numbers in a version or in the name of a folder.
func versionNumbers(text string) (list []int) {
	for _, digits := range numberPattern.FindAllString(filepath.Base(text), -1) {
		n, _ := strconv.Atoi(digits)
		list = append(list, n)
	}
	return list
}

// foreignUsage is in the message of a library that takes parameters right behind the name of a prepared statement.
const foreignUsage = "statementName [parm"
