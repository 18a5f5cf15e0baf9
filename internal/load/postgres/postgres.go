// Package postgres is the PostgreSQL of a load: a server that the load starts on disks of its VM with the scenario's settings, or an
// endpoint that the user names. It makes no load; generators that need a database share it. Bragg neither links nor contains PostgreSQL.
//
//	plan:   options ──ReadConfig──▶ Config ──▶ needs, commands, data and extents of the plan
//	run:    Open ▶ Create (an empty database; a prefill) or Up (start, or reach the endpoint) ▶ Query, Reach, Series ▶ Close
//
//	config.go     what a workload asks for: disks, endpoint, settings
//	parameters.go the values that settings may have
//	commands.go   the commands of a server and of its clients
//	server.go     a server on the VM
//	serve.go      one for clients on other VMs
//	series.go     what it says of itself while a load runs
package postgres

import (
	"github.com/braggdev/bragg/internal/load"
)

// Names of roles, and of their databases. Transactions run as Role, which may not run programs on the server.
const (
	Role      = "bragg"
	adminRole = "postgres"
)

// account owns servers where the agent is root. The package of PostgreSQL brings it.
const account = "postgres"

// folders are where packages keep several versions of PostgreSQL side by side.
var folders = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/lib/postgresql*/bin"}

// oldest is the first version with all options that are used. Only version 15 is tested.
const oldest = "13"

// Client is a program of PostgreSQL's clients that a generator needs.
func Client(name string) load.Need {
	return load.Need{Program: name, Oldest: oldest, Packages: []load.Package{
		{Family: load.Debian, Name: "postgresql"}, {Family: load.RedHat, Name: "postgresql-contrib"}, {Family: load.SUSE, Name: "postgresql-contrib"}}}
}

// Needs are the programs of a server and of its administration; for one elsewhere the latter.
func (c *Config) Needs() []load.Need {
	list := []load.Need{Client("psql")}
	if c.Endpoint == "" && !c.Connected() {
		server := []load.Package{{Family: load.Debian, Name: "postgresql"}, {Family: load.RedHat, Name: "postgresql-server"}, {Family: load.SUSE, Name: "postgresql-server"}}
		list = append(list, load.Need{Program: "initdb", Oldest: oldest, Packages: server}, load.Need{Program: "postgres", Oldest: oldest, Packages: server})
	}
	return list
}
