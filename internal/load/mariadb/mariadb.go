// Package mariadb is the MariaDB of a load: a server that the load starts on disks of its VM with the scenario's settings, or an
// endpoint that the user names. It makes no load. Bragg neither links nor contains MariaDB.
//
//	plan:   options ──ReadConfig──▶ Config ──▶ needs, commands, data and extents of the plan
//	run:    Open ▶ Create (an empty database; a prefill) or Up (start, or reach the endpoint) ▶ Query, Reach, Series ▶ Close
//
//	config.go     what a workload asks for: disks, endpoint, settings
//	parameters.go the values that settings may have
//	commands.go   the commands of a server and of its clients
//	server.go     a server on the VM
//	serve.go      one for clients on other VMs
//	secret.go     the settings of a server elsewhere, as files without a name
//	series.go     what it says of itself while a load runs
package mariadb

import "github.com/braggdev/bragg/internal/load"

// Names of roles. Transactions run as Role, in the database of that name.
const (
	Role      = "bragg"
	adminRole = "root"
	loginRole = "client" // for clients that need a password
)

// account owns servers where the agent is root. The package of MariaDB brings it.
const account = "mysql"

// folders are where packages keep servers, beside PATH.
var folders = []string{"/usr/sbin", "/usr/libexec"}

// oldest is the first version with all settings and counters that are used. Only version 10.11 is tested.
const oldest = "10.6"

// installer makes the files of a server. It is a script without a version.
const installer = "mariadb-install-db"

// Needs are the programs of a server and of its administration; for one elsewhere the latter.
func (c *Config) Needs() []load.Need {
	list := []load.Need{{Program: "mariadb", Packages: []load.Package{
		{Family: load.Debian, Name: "mariadb-client"}, {Family: load.RedHat, Name: "mariadb"}, {Family: load.SUSE, Name: "mariadb-client"}}}}
	if c.Endpoint == "" && !c.Connected() {
		list = append(list, load.Need{Program: "mariadbd", Oldest: oldest, Packages: []load.Package{
			{Family: load.Debian, Name: "mariadb-server"}, {Family: load.RedHat, Name: "mariadb-server"}, {Family: load.SUSE, Name: "mariadb"}}})
	}
	return list
}
