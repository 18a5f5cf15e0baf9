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

// variable brings a setting of HammerDB to a script.
type variable struct{ section, key, name, value string }

// All dialects. MySQL also works with a MariaDB, whose own dialect needs a library that only HammerDB brings.
var (
	PostgreSQL = &Dialect{Name: "pg", Library: "Pgtcl", dictionary: "configpostgresql", prefix: "pg_", access: func(a *Access) []variable {
		return []variable{
			{"connection", "pg_host", "HOST", a.Host}, {"connection", "pg_port", "PORT", a.Port}, {"connection", "pg_sslmode", "SSLMODE", a.SSLMode},
			{"tpcc", "pg_dbase", "DATABASE", a.Database}, {"tpcc", "pg_user", "USER", a.User}, {"tpcc", "pg_pass", "PASSWORD", a.Password},
			{"tpcc", "pg_superuser", "ADMIN", a.Admin}, {"tpcc", "pg_superuserpass", "ADMIN_PASSWORD", a.AdminPassword},
			{"tpcc", "pg_defaultdbase", "ADMIN_DATABASE", a.AdminDatabase},
		}
	}}
	MySQL   = &Dialect{Name: "mysql", Library: "mysqltcl", dictionary: "configmysql", prefix: "mysql_", access: accessMySQL("mysql_")}
	MariaDB = &Dialect{Name: "maria", Library: "mariatcl", dictionary: "configmariadb", prefix: "maria_", access: accessMySQL("maria_")}
)

// noSocket is how HammerDB spells that there is no socket.
const noSocket = "null"

// accessMySQL has no superuser: the user of the schema builds it.
func accessMySQL(prefix string) func(a *Access) []variable {
	return func(a *Access) []variable {
		host, socket := a.Host, noSocket
		if len(host) > 0 && host[0] == '/' {
			host, socket = "localhost", host
		}
		return []variable{
			{"connection", prefix + "host", "HOST", host}, {"connection", prefix + "port", "PORT", a.Port}, {"connection", prefix + "socket", "SOCKET", socket},
			{"tpcc", prefix + "dbase", "DATABASE", a.Database}, {"tpcc", prefix + "user", "USER", a.User}, {"tpcc", prefix + "pass", "PASSWORD", a.Password},
		}
	}
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
