package hammerdb

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Dialect is a kind of database as the scripts of HammerDB know it.
type Dialect struct {
	Name    string // of dbset: "pg"
	Library string // Tcl package that reaches it
	// dictionary has its settings, and prefix begins their names.
	dictionary, prefix string
	// others are names of settings that do not begin with prefix.
	others map[string]string
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

	SQLServer = &Dialect{Name: "mssqls", Library: "tdbc::odbc", dictionary: "configmssqlserver", prefix: "mssqls_", access: accessSQLServer}
	Oracle    = &Dialect{Name: "ora", Library: "Oratcl", dictionary: "configoracle", access: accessOracle,
		others: map[string]string{"driver": "ora_driver", "timeprofile": "ora_timeprofile"}}
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

// accessSQLServer encrypts connections unless the endpoint forbids it, and checks the server's certificate where the endpoint asks for that.
// Loading by bcp is off: it takes the password as an argument.
func accessSQLServer(a *Access) []variable {
	return []variable{
		{false, "linux_server", "HOST", a.Host}, {false, "tcp", "TCP", "true"}, {false, "port", "PORT", a.Port}, {false, "linux_authent", "LOGIN", "sql"},
		{false, "uid", "USER", a.User}, {false, "pass", "PASSWORD", a.Password},
		{false, "encrypt_connection", "ENCRYPT", strconv.FormatBool(a.SSLMode != "disable")},
		{false, "trust_server_cert", "TRUST", strconv.FormatBool(!strings.HasPrefix(a.SSLMode, "verify-"))},
		{true, "dbase", "DATABASE", a.Database}, {true, "use_bcp", "BCP", "false"},
	}
}

// accessOracle reaches a service of a host, or without one a name that Oracle's client resolves. The schema belongs to a user of its own, with the
// password of the administrator.
func accessOracle(a *Access) []variable {
	instance := a.Host
	if a.Database != "" {
		instance = net.JoinHostPort(a.Host, a.Port) + "/" + a.Database
	}
	return []variable{
		{false, "instance", "INSTANCE", instance}, {false, "system_user", "ADMIN", a.Admin}, {false, "system_password", "ADMIN_PASSWORD", a.AdminPassword},
		{true, "tpcc_user", "USER", a.User}, {true, "tpcc_pass", "PASSWORD", a.Password},
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
func (d *Dialect) key(name string) string {
	if other, is := d.others[name]; is {
		return other
	}
	return d.prefix + name
}

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
