package mariadb

import (
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// Commands makes the commands of a server and of its clients, for a plan and for a run.
type Commands struct {
	config *Config
	paths  map[string]string        // of programs; empty in a plan
	folder func(disk string) string // as clients see it
	own    func(disk string) string // as the server sees it
}

// Planned makes commands as a plan shows them: folders have the name of their disk.
func (c *Config) Planned() Commands {
	same := func(disk string) string { return disk }
	if c.Split {
		c.listen = database.Address{Host: "ADDRESS", Port: "PORT"}
	}
	return Commands{config: c, folder: same, own: same}
}

func (k Commands) command(name string, args ...string) program.Command {
	path := name
	if found, known := k.paths[name]; known {
		path = found
	}
	return program.Command{Path: path, Args: args}
}

// socketPath is in a folder that only its user may enter.
func socketPath(folder string) string { return folder + "/run/socket" }

// places are the options that say where the server has its files.
func (k Commands) places() []string {
	at := k.own(k.config.Disk)
	args := []string{"--no-defaults", "--datadir=" + at + "/data"}
	if k.config.LogDisk != k.config.Disk {
		args = append(args, "--innodb-log-group-home-dir="+k.own(k.config.LogDisk)+"/redo")
	}
	return args
}

// Install makes an empty server. Its users have no passwords: who reaches its socket is its user.
func (k Commands) Install() program.Command {
	c := k.command(installer, append(k.places(), "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")...)
	c.Alone = true
	return c
}

const (
	// connectionsSpare are connections of the server beside those of the clients.
	connectionsSpare = 20
	// statementsMax is the server's own limit of prepared statements. Its default is too low for many tables and threads.
	statementsMax = 1 << 20
)

// Mariadbd is the server.
func (k Commands) Mariadbd() program.Command {
	at := k.own(k.config.Disk)
	args := append(k.places(), "--socket="+socketPath(at), "--pid-file="+at+"/run/pid", "--tmpdir="+at+"/tmp",
		"--max-connections="+strconv.Itoa(k.config.Clients*k.config.ClientVMs()+connectionsSpare), "--max-prepared-stmt-count="+strconv.Itoa(statementsMax))
	if listen := k.config.listen; listen.Port != "" { // without names, addresses of this VM are not "localhost", whose users have no passwords
		args = append(args, "--bind-address="+listen.Host, "--port="+listen.Port, "--skip-name-resolve")
	} else {
		args = append(args, "--skip-networking")
	}
	for _, s := range k.config.Settings {
		value := s.Value
		if parameters[s.Name].size {
			bytes, _ := unit.ParseBytes(value) // it was checked
			value = strconv.FormatInt(bytes, 10)
		}
		if s.Name != "log_bin" {
			args = append(args, "--"+strings.ReplaceAll(s.Name, "_", "-")+"="+value)
		} else if value == "on" {
			args = append(args, "--log-bin="+at+"/data/binlog", "--server-id=1")
		}
	}
	c := k.command("mariadbd", args...)
	c.Alone = true
	return c
}

// Reach is how sysbench finds the server. Settings of one elsewhere are in a file without a name.
func (k Commands) Reach() []string {
	if k.config.Elsewhere() {
		return []string{"--config-file=" + program.Inherited(secretForSysbench)}
	}
	return []string{"--mysql-socket=" + socketPath(k.folder(k.config.Disk)), "--mysql-user=" + Role, "--mysql-db=" + Role}
}

// client runs a statement, or statements of its standard input.
func (k Commands) client(role, statement string) program.Command {
	first := "--no-defaults" // files with defaults have to be the first option
	if k.config.Elsewhere() {
		first = "--defaults-file=" + program.Inherited(secretForClient)
	}
	args := []string{first, "--batch", "--raw", "--skip-column-names", "--unbuffered"}
	if !k.config.Elsewhere() {
		args = append(args, "--socket="+socketPath(k.folder(k.config.Disk)), "--user="+role)
		if role == Role {
			args = append(args, "--database="+Role)
		}
	}
	if statement != "" {
		args = append(args, "--execute="+statement)
	}
	return k.command("mariadb", args...)
}
