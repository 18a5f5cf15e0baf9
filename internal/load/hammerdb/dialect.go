package hammerdb

import "fmt"

// Dialect is a kind of database as the scripts of HammerDB know it.
type Dialect struct {
	Name    string // of dbset: "pg"
	Library string // Tcl package that reaches it
	// dictionary has its settings, and prefix begins their names.
	dictionary, prefix string
	// access are the settings that Access has, with the variables that bring them.
	access func(a *Access) []variable
}

// variable brings a setting of HammerDB to a script: one of the connection, or one of the schema.
type variable struct {
	ofSchema         bool
	key, name, value string
}

// bench is one of HammerDB's two tests as its scripts know it.
type bench struct {
	name string // of dbset: "TPC-C"
	// section has its settings, and infix follows the prefix in the names of those that say how to reach the schema.
	section, infix string
}

var (
	tprocC = bench{name: "TPC-C", section: "tpcc"}
	tprocH = bench{name: "TPC-H", section: "tpch", infix: "tpch_"}
)

// All dialects. MySQL also works with a MariaDB, whose own dialect needs a library that only HammerDB brings.
var (
	PostgreSQL = &Dialect{Name: "pg", Library: "Pgtcl", dictionary: "configpostgresql", prefix: "pg_", access: func(a *Access) []variable {
		return []variable{
			{false, "host", "HOST", a.Host}, {false, "port", "PORT", a.Port}, {false, "sslmode", "SSLMODE", a.SSLMode},
			{true, "dbase", "DATABASE", a.Database}, {true, "user", "USER", a.User}, {true, "pass", "PASSWORD", a.Password},
			{true, "superuser", "ADMIN", a.Admin}, {true, "superuserpass", "ADMIN_PASSWORD", a.AdminPassword}, {true, "defaultdbase", "ADMIN_DATABASE", a.AdminDatabase},
		}
	}}
	MySQL   = &Dialect{Name: "mysql", Library: "mysqltcl", dictionary: "configmysql", prefix: "mysql_", access: accessMySQL}
	MariaDB = &Dialect{Name: "maria", Library: "mariatcl", dictionary: "configmariadb", prefix: "maria_", access: accessMySQL}
)

// noSocket is how HammerDB spells that there is no socket.
const noSocket = "null"

// accessMySQL has no superuser: the user of the schema builds it.
func accessMySQL(a *Access) []variable {
	host, socket := a.Host, noSocket
	if len(host) > 0 && host[0] == '/' {
		host, socket = "localhost", host
	}
	return []variable{
		{false, "host", "HOST", host}, {false, "port", "PORT", a.Port}, {false, "socket", "SOCKET", socket},
		{true, "dbase", "DATABASE", a.Database}, {true, "user", "USER", a.User}, {true, "pass", "PASSWORD", a.Password},
	}
}

// place is the section and the name of a setting.
func (d *Dialect) place(b bench, v variable) (section, key string) {
	if v.ofSchema {
		return b.section, d.prefix + b.infix + v.key
	}
	return "connection", d.prefix + v.key
}

// key is the name of a setting: "pg_count_ware".
func (d *Dialect) key(name string) string { return d.prefix + name }

// Environment has the variables that scripts read.
func (d *Dialect) Environment(a *Access) (env []string) {
	for _, v := range d.access(a) {
		env = append(env, variablePrefix+v.name+"="+v.value)
	}
	return env
}

const variablePrefix = "BRAGG_HAMMERDB_"

// probe is a script that loads the library, and prints its version and, for Pgtcl, how it calls functions: the message says that.
func (d *Dialect) probe() string {
	return fmt.Sprintf("set usage {}\nset library [package require %[1]s]\ncatch {pg_exec_prepared} usage\nputs \"%[1]s%[2]s$library: $usage\"\n", d.Library, probeMark)
}
