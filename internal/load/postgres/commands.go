package postgres

import (
	"cmp"
	"strconv"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
)

// Commands makes the commands of a server and of its clients, for a plan and for a run.
type Commands struct {
	config *Config
	tools  map[string]program.Tool // empty in a plan
	folder func(disk string) string
}

// Planned makes commands as a plan shows them: folders have the name of their disk.
func (c *Config) Planned() Commands {
	if c.Split {
		c.listen = database.Address{Host: "ADDRESS", Port: "PORT"}
	}
	return Commands{config: c, folder: func(disk string) string { return cmp.Or(disk, program.DiskFolder("")) }}
}

// Show adds a command to a plan.
func Show(p *load.Plan, c program.Command) {
	p.Program.Commands = append(p.Program.Commands, c.String())
}

// Tool is an installed program that the server or its generator needs.
func (k Commands) Tool(name string) program.Tool { return k.tools[name] }

// Command runs a program that is known by its name.
func (k Commands) Command(name string, args ...string) program.Command {
	path := name
	if tool, known := k.tools[name]; known {
		path = tool.Path
	}
	return program.Command{Path: path, Args: args}
}

// Folder is the folder of the data, or of clients of an endpoint, as commands see it.
func (k Commands) Folder() string { return k.folder(k.config.Disk) }

// ClientFolder is that of files of clients.
func (k Commands) ClientFolder() string {
	if k.config.Elsewhere() {
		return k.folder("")
	}
	return k.Folder()
}

func (k Commands) data() string { return k.Folder() + "/data" }

// Socket is the folder of the server's socket: beside the data, and only its user may enter it.
func (k Commands) Socket() string { return k.Folder() + "/run" }

// Initdb makes an empty server.
func (k Commands) Initdb() program.Command {
	args := []string{"--pgdata=" + k.data(), "--username=" + adminRole, "--auth=trust", "--encoding=UTF8", "--locale=C"}
	if k.config.LogDisk != k.config.Disk {
		args = append(args, "--waldir="+k.folder(k.config.LogDisk)+"/wal")
	}
	c := k.Command("initdb", args...)
	c.Alone = true
	return c
}

// connectionsSpare are connections of the server beside those of the clients.
const connectionsSpare = 20

// Postgres is the server. Its shared memory is in files of the data folder and in its own namespace, so that none is left behind.
func (k Commands) Postgres() program.Command {
	args := []string{"-D", k.data(), "-c", "listen_addresses=" + k.config.listen.Host, "-c", "unix_socket_directories=" + k.Socket(),
		"-c", "dynamic_shared_memory_type=mmap", "-c", "logging_collector=off", "-c", "log_checkpoints=on",
		"-c", "max_connections=" + strconv.Itoa(k.config.Clients*k.config.ClientVMs()+connectionsSpare)}
	if port := k.config.listen.Port; port != "" {
		args = append(args, "-c", "port="+port, "-c", "hba_file="+k.Folder()+"/"+accessFile, "-c", "password_encryption=scram-sha-256")
	}
	if k.config.LazyWAL {
		args = append(args, "-c", "wal_writer_delay=10s")
	}
	for _, s := range k.config.Settings {
		args = append(args, "-c", s.Name+"="+s.Value)
	}
	c := k.Command("postgres", args...)
	c.Alone = true
	return c
}

// Reach is how programs of PostgreSQL find the server; those of one elsewhere find it in their environment.
func (k Commands) Reach() []string { return k.reach(Role) }

func (k Commands) reach(role string) []string {
	if k.config.Elsewhere() {
		return nil
	}
	args := []string{"--host=" + k.Socket(), "--username=" + role}
	if port := k.config.listen.Port; port != "" {
		args = append(args, "--port="+port)
	}
	return args
}

// psql runs a statement, in the database of the role, or statements of its standard input.
func (k Commands) psql(role, statement string) program.Command {
	args := append([]string{"--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align"}, k.reach(role)...)
	if !k.config.Elsewhere() {
		args = append(args, "--dbname="+role) // the database of each role has its name
	}
	if statement != "" {
		args = append(args, "--set=ON_ERROR_STOP=1", "--command="+statement)
	}
	return k.Command("psql", args...)
}
